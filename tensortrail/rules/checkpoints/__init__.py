"""Stored checkpoints that are truncated, mixed up, or differ from their names and settings."""
