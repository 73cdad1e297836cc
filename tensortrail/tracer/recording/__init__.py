"""A recording begins, follows child processes, stops the program if asked, and ends."""
