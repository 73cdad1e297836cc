"""New tensors without the device or the values they need, and classes that make such tensors."""
