"""Copies between CPU and GPU that still run when something reads or replaces their memory."""
