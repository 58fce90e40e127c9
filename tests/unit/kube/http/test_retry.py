"""What is made again, and after how long."""

import pytest

from fairlead.kube.errors import RequestError, UnreachableError, refusal
from fairlead.kube.http.retry import Backoff, jitter, wait_s
from fairlead.kube.resources import PODS


def no(status: int, retry_after: str | None = None) -> RequestError:
    return refusal("list", PODS, status, b"", retry_after=retry_after)


lost = UnreachableError("list", PODS, "broke")
unsent = UnreachableError("list", PODS, "refused", not_sent=True)
untyped = refusal(
    "patch", PODS, 500, b'{"message": "failed to create typed patch object (default/p): .spec.x: field not declared"}'
)
CASES: dict[str, tuple[RequestError, bool, float | None]] = {
    "too many, and told how long to wait": (no(429, "7"), False, 7.0),
    "too many": (no(429), False, 0.25),
    "too many, and told a date": (no(429, "Sat, 21 Nov 2026 00:00:00 GMT"), False, 0.25),
    "an error of the server": (no(500), True, 0.25),
    "not available, and told how long to wait": (no(503, "2"), True, 2.0),
    "an error of the server, not idempotent": (no(503, "2"), False, None),
    "a broken connection": (lost, True, 0.25),
    "a broken connection, not idempotent": (lost, False, None),
    "never sent, not idempotent": (unsent, False, 0.25),
    "not implemented": (no(501), True, None),
    "invalid, and called an error of the server": (untyped, True, None),
    "forbidden": (no(403), True, None),
    "a conflict": (no(409), True, None),
    "gone": (no(410), True, None),
}


@pytest.mark.parametrize(("error", "idempotent", "want"), CASES.values(), ids=CASES)
def test_a_request_is_made_again(error: RequestError, idempotent: bool, want: float | None) -> None:
    assert wait_s(error, 0, lambda: 0.5, idempotent=idempotent) == want


def test_waits_double_up_to_half_a_minute() -> None:
    assert [jitter(n, lambda: 1.0) for n in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert jitter(10_000, lambda: 1.0) == 30
    assert jitter(5, lambda: 0.0) == 0


def test_a_healthy_minute_forgives() -> None:
    backoff = Backoff(lambda: 1.0)
    assert [backoff.record_failure(0), backoff.record_failure(1)] == [0.5, 1]
    backoff.well(2)
    backoff.well(50)
    assert backoff.record_failure(61) == 2, "not quite a minute"
    backoff.well(70)
    assert backoff.record_failure(130) == 0.5
