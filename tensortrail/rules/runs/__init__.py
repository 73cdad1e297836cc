"""Recorded runs that ended with an exception whose cause is known."""
