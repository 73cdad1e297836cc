"""Tensors and modules on another device than what they meet, are asked about, or are meant for."""
