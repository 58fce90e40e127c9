"""The long run: `python -m support.domains --cases 1000000 --seed 1`, or one case again: `--case 1/4711`."""

import sys

from support.domains.explorer import EXPLORER

if __name__ == "__main__":
    sys.exit(EXPLORER.main("support.domains"))
