"""What befalls checkpoints: one damage a function, and the check that must speak."""

from __future__ import annotations

from tests.doctor.checkpoint import damaged_archives, damaged_files, damaged_shards

DAMAGES = [*damaged_files.DAMAGES, *damaged_shards.DAMAGES, *damaged_archives.DAMAGES]
