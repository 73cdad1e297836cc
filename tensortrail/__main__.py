"""`python -m tensortrail`."""

import os
import sys

if sys.argv[1:2] != ["trace"] and sys.path[:1] == [os.getcwd()]:
    # Python puts the working folder first: a checkout with a `rich.py` would be run.
    del sys.path[0]

from tensortrail.cli import program

program()
