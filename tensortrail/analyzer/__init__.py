"""The lint: source text becomes findings. Nothing is imported or run of the code that is read."""
