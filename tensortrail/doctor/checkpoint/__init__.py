"""Checkpoints as they are stored: read without loading, judged without torch."""
