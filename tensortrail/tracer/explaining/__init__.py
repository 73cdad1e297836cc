"""What is told when an exception ends a traced program."""
