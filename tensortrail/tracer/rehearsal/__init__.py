"""Rehearsal: a script for GPUs runs on a machine without one, with real values."""
