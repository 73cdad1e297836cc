"""What the exit codes mean."""

CLEAN, FOUND, FAILED, INTERRUPTED = 0, 1, 2, 130
