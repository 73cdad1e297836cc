"""Files that are loaded: where they were saved, and where they go."""
