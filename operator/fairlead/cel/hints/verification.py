"""Hints are verified before they are offered: the checker has to find less to fault in what one who follows them gets.

A hint that leads to another error, to the same one again, or to an expression that always raises is worse than none.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from fairlead.cel.hints.rewrites import Hints, Rewriting, substitute
from fairlead.cel.syntax.ast import Checked
from fairlead.cooperative import Steps

_TRIED_MAX: Final = 16
"""Rewrites of one expression that are checked; each takes as long as checking the expression."""
_LENGTH_MAX: Final = 1_024
"""Characters of an expression whose hints can be checked quickly enough."""


@dataclass(frozen=True, slots=True)
class Remaining:
    """Faults of an expression: how many, not counting those that follow from others."""

    causes: int
    syntax_at: int | None = None
    """Offset of the syntax error, if there is one."""
    texts: tuple[str, ...] = ()
    """The parts that the faults are about, if that is known."""


@dataclass(slots=True)
class Verifier:
    """Chooses, for one expression, the first hint that helps."""

    source: str
    tree: Checked | None
    before: Remaining
    remaining: Callable[[str], Steps[Remaining]]
    """Returns the faults of another expression in the same place."""
    left: int = field(default=_TRIED_MAX)

    def chosen(self, hints: Hints) -> Steps[tuple[str, str]]:
        """Return the first hint that helps, with the expression that it leads to; "" for advice."""
        for hint in hints:
            if isinstance(hint, str):
                return hint, ""
            if self.left <= 0 or len(self.source) > _LENGTH_MAX:
                continue
            self.left -= 1
            yield
            rewritten = self.follow(hint)
            if self._helps(hint, (yield from self.remaining(rewritten))):
                return hint.hint, rewritten
        return "", ""

    def follow(self, hint: Rewriting) -> str:
        """Return the expression with a hint followed."""
        if isinstance(hint.part, tuple):
            start, end = hint.part
            return f"{self.source[:start]}{hint.code}{self.source[end:]}"
        if self.tree is None:
            raise ValueError("no tree")
        return substitute(self.tree.root, hint.part, hint.code)

    def _helps(self, hint: Rewriting, after: Remaining) -> bool:
        if self.before.syntax_at == after.syntax_at == 0 and after.causes < self.before.causes:
            return True
        if after.syntax_at is None:
            is_fewer = self.before.syntax_at is not None or after.causes < self.before.causes
            is_around = hint.is_name and 0 < len(after.texts) == after.causes == self.before.causes
            return is_fewer or (is_around and not any(one in hint.code for one in after.texts))
        # Where one slip is mended, the parser stops at the next.
        is_of_text = self.before.syntax_at is not None and isinstance(hint.part, tuple)
        return is_of_text and after.syntax_at > hint.part[0] + len(hint.code)  # type: ignore[index]
