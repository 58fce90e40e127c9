"""The run of `make test`: always the same 5,000 cases; and one by hypothesis, whose differences come shrunk."""

from random import Random

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from differential.cases import case
from differential.compare import run
from differential.tally import some_wish
from support.examples import MANY

CASES = 5_000


class Difference(AssertionError):  # noqa: N818 - as in what is looked for
    """Both sides differ."""


def compare_short() -> int:
    """Compare; raise at the first difference; give the number of cases."""
    compared = number = 0
    while compared < CASES:
        number += 1
        random = Random(f"short/{number}")
        result = run(case(random, some_wish(random) if number % 2 else None))
        if result.differences:
            raise Difference("\n".join(result.differences))
        compared += len(result.outcomes)
    return compared


@settings(max_examples=MANY, database=None, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def compare_shrinking(random: Random) -> None:
    """Compare few, with chance in the hands of hypothesis: it is not as varied, but makes what it finds small."""
    made = case(random)
    note(str(made))
    differences = run(made).differences
    assert not differences, "\n".join(differences)
