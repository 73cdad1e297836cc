"""Modules that are moved in part, not at all, too early or too late."""
