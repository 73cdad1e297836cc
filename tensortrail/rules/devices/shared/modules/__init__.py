"""What modules keep where `.to()` does not reach it, and models that are moved in part."""
