"""Memory that tensors share or seem to share: pointers, views, swaps, mapped files."""
