"""``python -m caveat.cli``."""

import sys

from caveat.cli import main

if __name__ == "__main__":
    sys.exit(main())
