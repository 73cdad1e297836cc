"""How code names devices: what is at hand, what is written out, and in which form it is."""
