"""Offloaded modules and weights, and the guards, hooks and flags around them."""
