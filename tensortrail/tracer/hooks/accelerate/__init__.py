"""Hooks for accelerate."""
