"""What a call gives, and where that lies.

`value_of_call` asks the other files, depending on what is called: a function of a library, a method
of a tensor or box, a module, an object, a function of the project."""
