"""Hooks for torch.distributed: collectives, FSDP2 and distributed checkpoints."""
