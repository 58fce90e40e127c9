"""What kopf is told to watch."""

import kopf
import pytest

from fairlead.api.names import GROUP, PLURAL, VERSION
from fairlead.control.loop.kopf_runtime import CHILDREN, settings
from fairlead.render.object_names import SCHEDULER_LABEL


@pytest.mark.parametrize(("group", "version", "plural"), CHILDREN)
def test_of_what_schedulers_are_made_of_only_ours_is_sent(group: str, version: str, plural: str) -> None:
    watched = kopf.Resource(group=group, version=version, plural=plural)
    assert [*settings().watching.label_selectors.collect(watched)] == [SCHEDULER_LABEL]


def test_of_policies_all_are_sent() -> None:
    watched = kopf.Resource(group=GROUP, version=VERSION, plural=PLURAL)
    assert not [*settings().watching.label_selectors.collect(watched)]
