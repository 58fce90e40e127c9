"""The run of `make test`: always the same 5,000 cases, and what hypothesis shrinks a difference to."""

from random import Random

from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from differential.compare import case, run
from differential.table import Cell, cells

CASES = 5_000
EXPRESSIONS = 1_800  # of three cases each; some are refused by the checker


class Difference(AssertionError):  # noqa: N818 - as in what is looked for
    """Both sides differ."""


def compare_short(*, shrink: bool = True, found: list[Cell] | None = None) -> int:
    """Compare; raise at the first difference, shrunk if wanted; give the number of cases."""
    compared = 0

    @settings(
        max_examples=EXPRESSIONS,
        database=None,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=False))
    def compare(random: Random) -> None:
        nonlocal compared
        made = case(random)
        note(str(made))
        result = run(made)
        compared += len(result.outcomes)
        if found is not None and result.checked is not None:
            found.extend(cells(result.checked, (outcome.error for outcome in result.outcomes)))
        if result.differences:
            raise Difference("\n".join(result.differences))

    compare()
    return compared
