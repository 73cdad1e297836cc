"""Moves: those whose result is lost, and what is moved beside each other."""
