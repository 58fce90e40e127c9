"""Mutations of what keeps a group in one domain, beside those that are about any ledger. The explorer finds them."""

from collections.abc import Sequence
from typing import Any, Final

import pytest

from fairlead.grants import group_domain
from fairlead.grants.entry_state import EntryState, judge
from fairlead.webhook.binding import ledger_writer
from support.grants import mutations
from support.grants.mutations import Mutate


def any_domain(patch: pytest.MonkeyPatch) -> None:
    """Add entries without a look at the domains of the others."""
    patch.setattr(group_domain, "agrees", lambda _domain, _other: True)


def entry_of_another_domain(patch: pytest.MonkeyPatch) -> None:
    """Take the entry of a pod's version for one of any domain."""
    patch.setattr(group_domain.GroupFacts, "differs", lambda *_: None)


def over_when_placed(patch: pytest.MonkeyPatch) -> None:
    """Take an entry for over when its pod is on a node."""

    def hasty(uid: str, entry: Any, _node: str | None, seen: Any) -> EntryState:
        return judge(uid, entry, "no node", seen)

    patch.setattr(ledger_writer, "judge", hasty)


MUTATIONS: Final[Sequence[Mutate]] = (
    any_domain,
    entry_of_another_domain,
    over_when_placed,
    mutations.no_resource_version,
    mutations.entry_dropped_on_time_out,
    mutations.gone_by_the_mirror,
    mutations.checked_before_the_newest,
    mutations.another_uid_of_any_age,
    mutations.binding_of_any_version,
)
