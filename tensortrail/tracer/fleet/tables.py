"""The tables of a run of ranks, opened by an engine: in this process, or on a cluster."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from tensortrail.tracer.exports.parquet_ranks import COLLECTIVES, EVENTS, FINDINGS, RANKS


@dataclass(frozen=True)
class Tables:
    """Ibis expressions; nothing is read before an answer is asked for."""

    events: Any
    ranks: Any
    findings: Any
    collectives: Any


def opened(folder: str, engine: str) -> Tables:
    """ImportError where the engine is not installed."""
    connected = _duckdb() if engine == "duckdb" else _spark()
    read = _read_duckdb if engine == "duckdb" else _read_spark
    names = (EVENTS, RANKS, FINDINGS, COLLECTIVES)
    return Tables(*(read(connected, os.path.join(folder, name)) for name in names))


def _duckdb() -> Any:
    import ibis

    return ibis.duckdb.connect()


def _spark() -> Any:
    """The session that is configured: `SPARK_REMOTE`, spark-submit, or this machine alone."""
    import ibis
    from pyspark.sql import SparkSession

    session = SparkSession.builder.appName("tensortrail fleet").getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    return ibis.pyspark.connect(session)


def _read_duckdb(connected: Any, folder: str) -> Any:
    parted = os.path.join(folder, "*", "*.parquet")
    return connected.read_parquet(parted, hive_partitioning=True)


def _read_spark(connected: Any, folder: str) -> Any:
    return connected.read_parquet(folder)
