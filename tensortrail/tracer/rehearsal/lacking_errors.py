"""Errors that say that a rehearsal lacks something, in the words of torch and of libraries."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tensortrail.tracer.rehearsal.lacks import Lacking

KERNELS = (
    "triton|flash_attn|flash_attn_interface|flash_attn_3|mslk|fbgemm_gpu|xformers|bitsandbytes|"
    "deep_gemm|cutlass|cupy|apex|transformer_engine|transformer_engine_torch|pynvml|vllm|sgl_kernel"
)
SAID: tuple[tuple[type[BaseException], str, str], ...] = (
    (
        ImportError,
        rf"No module named '({KERNELS})\b|cannot import name .* from '({KERNELS})\b"
        rf"|[Rr]equires? ({KERNELS})\b|(nvidia-ml-py)",
        "{} is not installed here, and its kernels need a GPU",
    ),
    (
        Exception,
        r"(0 active drivers|Cannot find a working triton installation|TritonMissing)",
        "kernels of triton need a GPU ({})",
    ),
    (
        NotImplementedError,
        r"Could not run '((?!aten::record_stream)\w+::[\w.]+)' with arguments from the 'CPU' ",
        "{} has a kernel for GPUs only",
    ),
    (
        RuntimeError,
        r"(not linked with support for cuda devices|Storage device not recognized: cuda)",
        "memory that C++ asks for is not simulated ({})",
    ),
    (
        ValueError,
        r"(Invalid scaling configuration)",
        "matrices scaled in blocks have kernels for GPUs only ({})",
    ),
    (
        AttributeError,
        r"'torch\._C' has no attribute '(_cuda\w+|_nccl\w+|_cudnn\w*)'",
        "torch.{} is not there in a torch without CUDA",
    ),
    (
        Exception,
        r"(libcuda\.so|libcudart\.so|libnvrtc|CUDA_HOME|\bnvcc\b|ProcessGroupNCCL\b(?!\.cpp)"
        r"|NCCL_(?!DEBUG)\w+)",
        "{} is not there without a GPU",
    ),
)


def lack_behind(error: BaseException) -> str:
    """What the error says a rehearsal lacks; empty if it says something else."""
    for each in _chain(error):
        if isinstance(each, Lacking):
            return str(each)
        for kind, pattern, said in SAID:
            if isinstance(each, kind) and (found := re.search(pattern, str(each))):
                return said.format(next(filter(None, found.groups())))
    return ""


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
