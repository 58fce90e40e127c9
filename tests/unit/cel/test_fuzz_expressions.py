"""A short run of hostile expressions: what comes of them, in how much memory; the long run looks at the time, too."""

from random import Random

from fuzz.expressions import MEMORY, Evaluations


def test_hostile_expressions_end_within_the_limits_of_the_language() -> None:
    one = Evaluations(Random("unit"), timed=False)  # noqa: S311 - it is to come again
    one.run(200)
    assert one.largest[0] < MEMORY
    assert one.outcomes["ByteCode: a value"] > 20
    assert one.outcomes["ByteCode: CostExceeded"] > 20
