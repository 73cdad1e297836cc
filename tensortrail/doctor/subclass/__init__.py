"""What a wrapper tensor subclass must do for checkpoints, sharding, offloading and compiling, and
whether it does: found by running the operations on small tensors."""
