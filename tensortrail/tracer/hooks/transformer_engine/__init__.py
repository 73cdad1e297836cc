"""Hooks for TransformerEngine."""
