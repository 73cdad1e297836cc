"""`python -m tensortrail`."""

import sys

from tensortrail.cli import main

sys.exit(main())
