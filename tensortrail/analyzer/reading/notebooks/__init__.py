"""Notebooks: their cells are judged as one program, and each is mended in its place."""
