"""What the mode and the hooks report becomes events here, or is left out."""
