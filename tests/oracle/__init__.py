"""Ask the official engine of the language what an expression is, to compare with what we say.

Values go in as literals and come out as in `fairlead.cel.values.value_types`. The engine's Python types cut moments to
microseconds and cannot hold optionals, so that expressions with such results ask for their text or their content.
"""

from oracle.engine import Outcome, ask, outcome_of, overloads_of
from oracle.literals import literal

__all__ = ["Outcome", "ask", "literal", "outcome_of", "overloads_of"]
