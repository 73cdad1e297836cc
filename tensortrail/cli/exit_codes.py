"""What the exit codes mean."""

CLEAN, FOUND, FAILED, STOPPED, INTERRUPTED = 0, 1, 2, 3, 130
