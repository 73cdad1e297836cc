"""Edits of a file: fixes, settings put into calls, imports added."""
