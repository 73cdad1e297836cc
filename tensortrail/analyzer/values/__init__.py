"""What every expression of a function is: values, kinds, placements of objects."""
