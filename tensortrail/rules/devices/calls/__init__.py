"""Calls that leave out a device or another argument, and functions that do not use theirs."""
