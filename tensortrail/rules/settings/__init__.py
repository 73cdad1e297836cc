"""Settings of accelerate, DeepSpeed and transformers that contradict each other or do nothing."""
