"""The function mode that sees every call of torch's Python API, and what it acts on."""
