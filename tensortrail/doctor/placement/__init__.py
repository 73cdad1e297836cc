"""Where the parts of a model would go, before any of them is loaded."""
