"""One file a format: bytes of a header or directory -> what rules see."""
