"""Checkpoints on disk that are cut off, mixed up, or not what their names and settings say."""
