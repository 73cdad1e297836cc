"""Memory that tensors share or are thought to share: pointers, views, swaps, files mapped."""
