"""What the texts of a project's files say by their words alone: no file is parsed for it.

`customs` says how things are usually called, `reach` whether the project comes to a function,
`programs` which files are of one program. `texts_asked`, `uses` and `saves` in the folder above ask
these for the other files."""
