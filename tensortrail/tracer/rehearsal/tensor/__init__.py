"""The simulated tensor: what it says of itself, its storages, its files."""
