"""Observers: each looks for one thing while the program runs."""
