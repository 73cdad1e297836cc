"""Hooks for torch.compile and torch.jit: compiled regions stay as they are."""
