"""Devices of the processes of a distributed run, and of the wrappers around its models."""
