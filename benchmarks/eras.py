"""Packages as they were when a fix was made, for code and tests of that time.

torch stays the installed one: older releases of it bring gigabytes of CUDA. The others are
installed beside it without what they depend on, once for each era."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Era(NamedTuple):
    until: str
    """A date, which belongs to it."""
    pins: tuple[str, ...]


def _pins(
    transformers: str, tokenizers: str, hub: str, accelerate: str, diffusers: str, peft: str
) -> tuple[str, ...]:
    return (
        f"transformers=={transformers}",
        f"tokenizers=={tokenizers}",
        f"huggingface_hub=={hub}",
        f"accelerate=={accelerate}",
        f"diffusers=={diffusers}",
        f"peft=={peft}",
    )


ERAS = (
    Era("2023-07-31", _pins("4.30.2", "0.13.3", "0.15.1", "0.20.3", "0.17.1", "0.3.0")),
    Era("2024-02-29", _pins("4.35.2", "0.15.0", "0.19.4", "0.24.1", "0.23.1", "0.6.2")),
    Era("2024-08-31", _pins("4.41.2", "0.19.1", "0.23.2", "0.30.1", "0.28.2", "0.11.1")),
    Era("2024-12-05", _pins("4.45.2", "0.20.1", "0.26.1", "1.0.1", "0.31.0", "0.13.2")),
    Era("2025-04-30", _pins("4.48.0", "0.21.0", "0.27.1", "1.2.1", "0.32.1", "0.14.0")),
    Era("2025-09-15", _pins("4.52.4", "0.21.1", "0.32.4", "1.7.0", "0.33.1", "0.17.1")),
    Era("2026-01-31", _pins("4.57.1", "0.22.1", "0.35.3", "1.11.0", "0.35.2", "0.17.1")),
    Era("2026-05-31", _pins("5.1.0", "0.22.2", "1.4.1", "1.12.0", "0.36.0", "0.18.1")),
)
"""Earliest first. What is later runs with the installed packages."""

HELPERS = Era(
    "helpers",
    ("parameterized==0.9.0", "einops==0.8.2", "scipy==1.17.1", "loguru==0.7.3",
     "lightning-utilities==0.14.3",
     "datasets==3.2.0", "dill==0.3.8", "multiprocess==0.70.16", "xxhash==3.5.0", "pandas==2.2.3",
     "python-dateutil==2.9.0", "pytz==2025.1", "six==1.17.0", "aiohttp==3.11.11", "yarl==1.18.3",
     "multidict==6.1.0", "aiosignal==1.3.2", "frozenlist==1.5.0", "attrs==24.3.0",
     "propcache==0.2.1", "aiohappyeyeballs==2.4.4", "setuptools==75.8.0", "httpx==0.28.1",
     "httpcore==1.0.9", "h11==0.14.0", "anyio==4.8.0", "sniffio==1.3.1", "typer-slim==0.20.0"),
)  # fmt: skip
"""What code or tests of some projects import, of any time."""


def packages(date: str, folder: Path) -> list[Path]:
    """Where the packages of that day lie, installed if they are not there yet."""
    era = next((each for each in ERAS if date <= each.until), None)
    return [_installed(each, folder) for each in (era, HELPERS) if each]


def _installed(era: Era, folder: Path) -> Path:
    target = folder / era.until
    if not target.is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*command, "--target", str(target), *era.pins], check=True)
    return target
