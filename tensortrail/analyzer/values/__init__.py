"""What every expression of a function is: values, kinds, placements of objects.

`flow` runs a function statement by statement, `expressions` and `calls` give values to what stands
in it, `narrowing` takes conditions into account, and `state` holds what is bound."""
