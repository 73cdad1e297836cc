"""Settings files of accelerate, DeepSpeed and transformers: read, and judged against each other."""
