"""Moves of tensors that are lost, incomplete, or change more than the device."""
