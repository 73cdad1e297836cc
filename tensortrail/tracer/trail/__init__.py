"""The trail on disk: how it is written while a program runs, and read afterwards."""
