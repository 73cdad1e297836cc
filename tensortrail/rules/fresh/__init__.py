"""Tensors made without the device or the values they need, and classes that make them so."""
