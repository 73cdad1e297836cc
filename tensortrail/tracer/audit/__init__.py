"""Fingerprints of weights: taken on their device, kept in small files, compared later."""
