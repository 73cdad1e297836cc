"""Batches of a loader that are not moved to the device of their model, or only in part."""
