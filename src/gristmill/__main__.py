"""`python -m gristmill` is the command `gristmill`."""

import sys

from gristmill.cli import main

if __name__ == "__main__":  # child processes import this module under another name
    sys.exit(main())
