"""Settings of accelerate, DeepSpeed and transformers that conflict or have no effect."""
