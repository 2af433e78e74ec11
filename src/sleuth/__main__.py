"""`python -m sleuth`: the command line without its script."""

import sys

from sleuth.cli import main

sys.exit(main())
