"""Domains in which attempts to place groups failed: the next attempt of a group begins with another one, if it can."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fairlead.documents import subject_hash
from fairlead.grants.group_domain import RequiredDomain
from fairlead.groups.group import Group
from fairlead.groups.member_calls import AttemptEnded
from fairlead.groups.turns import Turns

if TYPE_CHECKING:
    from fairlead.grants.entry import Domain

AVOIDED_MAX: Final = 1000
"""Most groups of which a domain is kept; more leave out those that failed first."""


class FailedDomains:
    """Domains of the attempt that is under way, and of those that have failed last."""

    def __init__(self, is_known: Callable[[Group], bool]) -> None:
        """`is_known` tells whether a group has members that wait."""
        self._is_known = is_known
        self._current: dict[str, Domain] = {}
        self._failed: dict[Group, Mapping[str, Domain]] = {}
        self.revision = 0
        """Number that grows when other domains are to be avoided."""

    def added_to(self, turns: Turns) -> Turns:
        """Return what is published, with the domains to be avoided."""
        avoided = {subject_hash(key): domain for domains in self._failed.values() for key, domain in domains.items()}
        return replace(turns, avoided=avoided)

    def committed(self, domains: Iterable[RequiredDomain]) -> None:
        """Hear of the domains of a member that is held."""
        self._current |= {one.group: one.domain for one in domains}

    def ended(self, attempt: AttemptEnded) -> None:
        """Hear that the attempt is over."""
        domains, self._current = self._current, {}
        before = dict(self._failed)
        if not attempt.result.is_failure or domains:
            self._failed.pop(attempt.group, None)
        if attempt.result.is_failure and domains:
            self._failed[attempt.group] = domains
        kept = [(group, domains) for group, domains in self._failed.items() if self._is_known(group)]
        self._failed = dict(kept[-AVOIDED_MAX:])
        self.revision += self._failed != before
