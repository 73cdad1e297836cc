"""Tests of round trips that can no longer fail."""
