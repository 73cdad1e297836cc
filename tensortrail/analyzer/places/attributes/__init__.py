"""What an object keeps under its attributes, and which of them a move of the object takes along.

`own_attribute` answers for one class; the other files find what it rests on in the class."""
