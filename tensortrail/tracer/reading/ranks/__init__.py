"""A run of many ranks: each is read by itself, and what they say is compared and told once."""
