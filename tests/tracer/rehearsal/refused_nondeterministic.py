"""What a GPU refuses after `torch.use_deterministic_algorithms(True)`."""

from __future__ import annotations

from tests.tracer.rehearsal.programs import Refused

BEGIN = """\
x = torch.rand({}, device=G, requires_grad=True)
torch.use_deterministic_algorithms(True)
try:
    {}
finally:
    torch.use_deterministic_algorithms(False)
"""
INDICES = "torch.tensor([[0, 1]], device=G)"


def _refused(call: str, kernel: str, shape: str = "2, 3, 4, 4") -> Refused:
    says = f"{kernel} does not have a deterministic implementation, but you set "
    return Refused(f"determinism: {kernel}, {call}", BEGIN.format(shape, call), says, "")


def _backward(call: str, kernel: str, shape: str = "2, 3, 4, 4") -> Refused:
    return _refused(f"{call}.sum().backward()", kernel, shape)


NONDETERMINISTIC = (
    _backward("F.avg_pool3d(x, 1)", "avg_pool3d_backward_cuda"),
    _backward("F.adaptive_avg_pool2d(x, 3)", "adaptive_avg_pool2d_backward_cuda"),
    _backward("F.adaptive_avg_pool3d(x, 3)", "adaptive_avg_pool3d_backward_cuda"),
    _backward("F.adaptive_max_pool2d(x, 3)", "adaptive_max_pool2d_backward_cuda"),
    _backward(
        "F.fractional_max_pool2d(x, 2, output_size=2)",
        "fractional_max_pool2d_backward_cuda",
    ),
    _backward(
        "F.interpolate(x, size=9, mode='linear')", "upsample_linear1d_backward_out_cuda", "2, 3, 4"
    ),
    _backward("F.interpolate(x, size=9, mode='bicubic')", "upsample_bicubic2d_backward_out_cuda"),
    _backward("F.pad(x, (1, 1, 1, 1), mode='reflect')", "reflection_pad2d_backward_cuda"),
    _backward(
        "F.grid_sample(x, torch.rand(2, 3, 3, 2, device=G), align_corners=False)",
        "grid_sampler_2d_backward_cuda",
    ),
    _backward(
        "F.ctc_loss(x.log_softmax(2), torch.ones(2, 1, device=G).long(), (3, 3), (1, 1))",
        "ctc_loss_backward_gpu",
        "3, 2, 4",
    ),
    _backward(
        f"F.embedding_bag({INDICES}, x, mode='max')", "embedding_bag_backward_cuda_max", "2, 3"
    ),
    _refused(
        "F.nll_loss(x, torch.zeros(2, 4, 4, dtype=torch.long, device=G))",
        "nll_loss2d_forward_out_cuda_template",
    ),
    _refused("torch.cumsum(x, 0)", "cumsum_cuda_kernel"),
    _refused("x.detach().cumsum_(0)", "cumsum_cuda_kernel"),
    _refused("x.median(0)", "median CUDA with indices output"),
    _refused("torch.histc(x.detach())", "_histc_cuda with floating point input"),
    _refused("torch.bincount(torch.tensor([0, 1], device=G), x)", "_bincount_cuda", "2"),
    _refused(f"x.detach().put_({INDICES}, x[:1, :2], accumulate=True)", "put_", "2, 3"),
    _refused(f"x.scatter_reduce(0, {INDICES}, x, 'prod')", "scatter_reduce_cuda_prod_", "2, 3"),
    _refused(
        f"x.detach().scatter(0, {INDICES}, x.detach(), reduce='multiply')",
        "scatter_reduce_cuda_kernel",
        "2, 3",
    ),
)
