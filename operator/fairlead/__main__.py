"""`python -m fairlead`."""

import sys

from fairlead.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
