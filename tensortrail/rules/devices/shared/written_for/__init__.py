"""Whom code is written for: any device, the CPU or a GPU, by what it does and by who calls it."""
