"""The engine with the functions that are ours."""

import functools
from typing import Any

from cel_expr_python import cel

from fairlead.cel.engine.environment import libraries
from fairlead.cel.engine.own_functions import own_functions
from fairlead.cel.engine.protobuf import pool
from oracle.engine import Outcome, ask


def ask_with_own(expression: str) -> Outcome:
    """Evaluate on an engine that has our functions; values of opaque types come back as such."""
    return ask(expression, _environment())


@functools.cache
def _environment() -> Any:
    """Make an environment as the product does."""
    return cel.NewEnv(pool(), config=libraries(), functions=own_functions())
