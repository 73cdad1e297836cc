"""Copies between host and device that are still going on when something reads or replaces them."""
