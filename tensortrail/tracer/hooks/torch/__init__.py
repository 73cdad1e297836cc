"""Hooks for torch itself, and for the threads and processes a program starts."""
