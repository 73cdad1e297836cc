"""Hooks for safetensors."""
