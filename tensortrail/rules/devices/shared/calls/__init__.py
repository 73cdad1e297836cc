"""Calls that leave out an argument, beside those that pass it."""
