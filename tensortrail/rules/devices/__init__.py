"""Tensors and modules on another device than the other operands, or than the code expects."""
