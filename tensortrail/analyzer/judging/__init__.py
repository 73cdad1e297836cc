"""The check of files, from paths to findings."""
