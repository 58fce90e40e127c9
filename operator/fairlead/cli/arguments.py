"""What commands are added to."""

import argparse  # noqa: TC003 - who imports this may ask what it means
from typing import TypeAlias

# For type checkers only it is generic.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - it has no public name
