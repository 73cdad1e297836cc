"""Hooks for diffusers."""
