"""Tensors and modules on another device than the one they meet, are asked about, or are meant for."""
