"""Fixes of torchrec that a test on a CPU does not show."""

import pytest
import torch
from bare_packages import stand_for

GPU = "cuda:0" if torch.cuda.is_available() else "cpu"
stand_for(  # others ask for fbgemm
    ["torchrec", "torchrec.metrics", "torchrec.sparse", "torchrec.distributed"],
    ["torchrec.distributed.types"],
)


@pytest.mark.fix("80b19a227")
def test_entropy_of_groups_on_the_gpu():
    from torchrec.metrics.segmented_ne import get_segemented_ne_states

    values = torch.rand(1, 4, device=GPU)
    groups = torch.tensor([0, 0, 1, 1], device=GPU)
    states = get_segemented_ne_states(values[0], values[0], values[0], groups, 1e-6, 2)
    assert {each.device for each in states.values()} == {torch.device(GPU)}


@pytest.mark.fix("59e99fc8f")
def test_gains_of_sessions_on_the_gpu():
    from torchrec.metrics.ndcg import get_ndcg_states

    values = torch.rand(1, 4, dtype=torch.double, device=GPU)
    sessions = torch.tensor([[0, 0, 1, 1]], device=GPU)
    states = get_ndcg_states(values, values, values, sessions, False)
    assert states["sum_ndcg"].device == torch.device(GPU)


@pytest.mark.fix("521aae1c1")
def test_lengths_lie_where_the_values_are():
    from torchrec.sparse.jagged_tensor import JaggedTensor

    jagged = JaggedTensor.from_dense([torch.ones(2, device=GPU), torch.ones(3, device=GPU)])
    assert jagged.lengths().device == torch.device(GPU)
