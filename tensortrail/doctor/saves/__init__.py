"""What `save_pretrained` of transformers will do with a model: files, groups, memory, disk."""
