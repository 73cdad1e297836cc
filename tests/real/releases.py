"""Other releases of the real libraries, each in a folder of its own outside the repository.

A folder holds the pinned packages and nothing else: put first on PYTHONPATH it shadows the
installed release, and torch with everything else stays as the tested set has it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
RELEASES = CACHE / "tensortrail-tests" / "site-packages"
"""Called as installed packages' folders are: what lies in it is nobody's own code."""


TRANSFORMERS_5_NEEDS = (
    "huggingface_hub==1.5.0",
    "httpx==0.28.1",
    "httpcore==1.0.9",
    "h11==0.16.0",
    "anyio==4.9.0",
    "sniffio==1.3.1",
    "tokenizers==0.22.2",
)
TRANSFORMER_ENGINE_NEEDS = (
    "einops==0.8.2",
    "onnx==1.23.2",
    "onnxscript==0.7.2",
    "onnx_ir==1.1.0",
    "ml_dtypes==0.6.0",
    "protobuf==7.36.2",
    "pydantic==2.14.3",
    "pydantic_core==2.50.4",
    "annotated-types==0.8.0",
    "typing-inspection==0.4.5",
)
PINNED = {
    "helpers of suites 1.0": (
        "parameterized==0.9.0",
        "compressed-tensors==0.18.0",
        "loguru==0.7.3",
        "httpx==0.28.1",
        "httpcore==1.0.9",
        "requests-mock==1.12.1",
    ),
    "helpers of peft 1.0": (
        "datasets==4.7.0",
        "dill==0.4.1",
        "multiprocess==0.70.19",
        "xxhash==4.1.0",
        "pandas==3.1.1",
        "python-dateutil==4.0.0",
        "pytz==2026.6",
        "six==1.17.0",
    ),
    "helpers of kornia 1.0": (
        "kornia_rs==0.2.0",
        "onnx==1.23.2",
        "ml_dtypes==0.6.0",
        "protobuf==7.36.2",
    ),
    "helpers of lightning 1.0": (
        "lightning-utilities==0.15.3",
        "torchmetrics==1.9.0",
        "pytest-mock==3.17.0",
        "psutil==7.2.2",
    ),
    "helpers of pyro 1.0": ("pyro-api==0.1.2", "opt_einsum==3.4.0", "scipy==1.17.1"),
    "helpers of pytorch-geometric 1.0": (
        "xxhash==4.1.0",
        "aiohttp==3.14.5",
        "aiosignal==1.4.0",
        "aiohappyeyeballs==2.7.1",
        "frozenlist==1.8.0",
        "multidict==7.2.1",
        "yarl==1.25.1",
        "propcache==0.5.4",
        "attrs==26.1.0",
        "pyparsing==3.3.3",
        "psutil==7.2.2",
    ),
    "helpers of tensordict 1.0": (
        "tensordict==0.14.0",
        "cloudpickle==3.1.3",
        "orjson==3.13.0",
        "pyvers==0.2.3",
    ),
    "bitsandbytes 0.50.2": ("bitsandbytes==0.50.2",),
    "deepspeed 0.19.8": (
        "deepspeed==0.19.8",
        "hjson==3.1.0",
        "py-cpuinfo==9.0.0",
        "ninja==1.13.2",
        "einops==0.8.2",
        "psutil==7.2.2",
        "pydantic==2.14.3",
        "pydantic_core==2.50.4",
        "annotated-types==0.8.0",
        "typing-inspection==0.4.5",
    ),
    "helpers of torchtitan 1.0": (
        "triton==3.9.0",
        "grain==0.2.18",
        "absl-py==2.5.1",
        "array-record==0.8.6",
        "cloudpickle==3.1.2",
        "etils==1.15.0",
        "protobuf==7.36.2",
        "tyro==1.0.17",
        "docstring-parser==0.18.0",
        "typeguard==4.6.0",
        "einops==0.8.2",
        "spmd_types==0.2.3",
        "torch_checkpointing==0.1.1",
        "datasets==4.7.0",
        "dill==0.4.1",
        "multiprocess==0.70.19",
        "xxhash==4.1.0",
        "pandas==3.1.1",
        "python-dateutil==4.0.0",
        "pytz==2026.6",
        "six==1.17.0",
        "tensorboard==2.21.0",
    ),
    "torch-tensorrt 2.8.0": ("torch-tensorrt==2.8.0", "dllist==2.0.0"),
    "torch-tensorrt 2.14.0": ("torch-tensorrt==2.14.0", "dllist==2.0.0"),
    "transformer-engine 2.15.0": ("transformer-engine==2.15.0", *TRANSFORMER_ENGINE_NEEDS),
    "transformer-engine 2.16.0": ("transformer-engine==2.16.0", *TRANSFORMER_ENGINE_NEEDS),
    "transformers 5.13.1": ("transformers==5.13.1", *TRANSFORMERS_5_NEEDS),
    "transformers 5.14.1": ("transformers==5.14.1", *TRANSFORMERS_5_NEEDS),
}


def release(name: str) -> Path:
    """The folder of one entry of `PINNED`, installed once on a machine."""
    requirements = PINNED[name]
    digest = hashlib.sha256(" ".join(requirements).encode()).hexdigest()[:8]
    folder = RELEASES / f"{name.replace(' ', '-')}-{digest}"
    if folder.is_dir():
        return folder
    RELEASES.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(dir=RELEASES))
    try:
        _install(requirements, building)
        building.chmod(0o755)
        os.rename(building, folder)
    except OSError:  # another process was quicker
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return folder


def with_release(name: str) -> dict[str, str]:
    """The environment of a program that imports this release instead of the installed one."""
    first = [str(release(name)), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, first))}


def _install(requirements: Sequence[str], folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*command, "--no-deps", "--no-compile", "--target", str(folder), *requirements],
        check=True,
        timeout=600,
    )
