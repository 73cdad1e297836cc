"""Modules and weights that leave the device, and what guards, hooks and flags miss of it."""
