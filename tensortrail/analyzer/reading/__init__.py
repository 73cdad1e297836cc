"""The Python files of a check, from paths to bytes: found, decoded, cut where very large."""
