"""Operations on simulated devices: what is refused, and how the rest is computed."""
