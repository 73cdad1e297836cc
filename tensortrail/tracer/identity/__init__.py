"""Which bytes a tensor has, whose line it is, what a module owns, who holds a storage."""
