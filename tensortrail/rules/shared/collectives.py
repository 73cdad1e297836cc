"""Functions of `torch.distributed` in which each process waits for all others."""

from __future__ import annotations

GROUP_AT = {
    "all_reduce": 2, "all_gather": 2, "all_gather_into_tensor": 2, "all_gather_single": 2,
    "all_gather_object": 2, "all_to_all": 2, "all_to_all_single": 4, "barrier": 0, "broadcast": 2,
    "broadcast_object_list": 2, "gather": 3, "gather_object": 3, "monitored_barrier": 0,
    "reduce": 3, "reduce_scatter": 3, "reduce_scatter_single": 3, "reduce_scatter_tensor": 3,
    "scatter": 3, "scatter_object_list": 3,
}  # fmt: skip
"""Of `torch.distributed`, with the position of the group."""
