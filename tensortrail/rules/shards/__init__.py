"""Writing and loading checkpoints: state dicts, shards and their index, ties, several ranks."""
