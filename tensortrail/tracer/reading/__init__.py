"""A run is read back from its trail: the timeline, its findings, its ranks, its summary."""
