"""Trees, caches, sources and moments chosen to do harm."""
