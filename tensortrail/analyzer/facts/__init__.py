"""Classes, names and settings wherever a project or a library defines them."""
