"""Hooks for Torch-TensorRT."""
