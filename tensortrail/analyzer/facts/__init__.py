"""Classes, names and settings wherever a project or a library defines them.

`project` reads other files whole, where a question needs it; what can be told by words alone is
asked of their texts (`texts`, and for other files `texts_asked`, `uses`, `saves`). `answers`
remembers what files answered."""
