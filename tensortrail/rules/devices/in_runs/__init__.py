"""What only a recorded run shows: an operation that refused the devices of its operands."""
