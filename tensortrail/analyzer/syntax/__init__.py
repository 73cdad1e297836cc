"""Syntax trees, the names in them, and the conditions that a node stands under."""
