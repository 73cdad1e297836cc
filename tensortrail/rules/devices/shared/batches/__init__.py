"""What loops get from their loaders, and which parts of it are moved."""
