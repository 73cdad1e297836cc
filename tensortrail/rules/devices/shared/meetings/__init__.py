"""What was made without a device, and what it meets."""
