"""What a name or an expression holds: the places of its tensors, joined, cut and computed with.

`environment` says what is held under which name, `operations` what comes of several tensors."""
