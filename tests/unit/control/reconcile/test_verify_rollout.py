"""What a scheduler complains of."""

import asyncio
from typing import Any

import pytest

from fairlead.control.reconcile.verify_rollout import recent_scheduler_errors

HEAD = "E1122 10:00:00.000000       1 schedule_one.go:1044] "
SCHEDULING = f'{HEAD}"Error scheduling pod; retrying"'
FAILED = 'err="extender \\"https://x:8443\\" failed: context deadline exceeded"'


class Logs:
    def __init__(self, text: str) -> None:
        self.text = text

    async def get(self, *_: Any) -> bytes:
        return self.text.encode()


@pytest.mark.parametrize(
    ("line", "want"),
    [
        (f'{SCHEDULING} {FAILED} pod="tenant/hunter2" node="hunter2"', f"{SCHEDULING} {FAILED}"),
        (f'{SCHEDULING} pod="tenant/hunter2" extender="x"', SCHEDULING),
        (f"{SCHEDULING} err=<", None),
        (f'{SCHEDULING} err="tls: hunter2', SCHEDULING),
        (
            f"{HEAD}x509: certificate signed by unknown authority",
            f"{HEAD}x509: certificate signed by unknown authority",
        ),
        (f'{HEAD}"said twice" {FAILED}', f'{HEAD}"said twice" {FAILED}'),
        ("I1122 an extender is used", None),
        ("E1122 something else", None),
    ],
)
def test_the_status_tells_its_error_and_not_which_pods_it_is_about(line: str, want: str | None) -> None:
    pod = {"metadata": {"namespace": "fairlead-system", "name": "s-1"}}
    client: Any = Logs(f"I1122 before\n{line}\nI1122 after\n")
    assert asyncio.run(recent_scheduler_errors(client, [pod])) == (f"s-1 logged: {want}" if want else "")
