"""Devices that are named in the wrong form or chosen in the wrong way."""
