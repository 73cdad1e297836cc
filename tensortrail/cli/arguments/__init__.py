"""The arguments of the commands, a file for each that has many."""
