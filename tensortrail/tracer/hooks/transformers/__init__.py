"""Hooks for transformers."""
