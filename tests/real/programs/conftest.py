"""The failing programs are run by tests; one of them is a file of tests itself."""

collect_ignore = ["failing"]
