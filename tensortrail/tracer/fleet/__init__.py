"""Questions across the ranks of a run are asked of an engine, on their Parquet form."""
