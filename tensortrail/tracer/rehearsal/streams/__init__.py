"""Streams and events of simulated devices, and the races between them."""
