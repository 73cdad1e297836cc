"""`torch.cuda.cudart().cudaError`, and what CUDA says of each."""

from __future__ import annotations

SAID = {
    0: "no error",
    1: "invalid argument",
    2: "out of memory",
    3: "initialization error",
    100: "no CUDA-capable device is detected",
    101: "invalid device ordinal",
    700: "an illegal memory access was encountered",
    719: "unspecified launch failure",
}


class Error(int):
    """The result of a call of CUDA's runtime."""

    success = 0


def told(code: int) -> str:
    return SAID.get(code, "unrecognized error code")
