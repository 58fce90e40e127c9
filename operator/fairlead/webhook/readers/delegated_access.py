"""Delegated access: the API server says who a caller is, and whether it may read a path.

Components of Kubernetes do the same for their metrics: a TokenReview, then a SubjectAccessReview. Answers are kept for
a short while, those that allow apart from those that deny, so that callers with made-up tokens displace no others.
Tokens themselves are not kept.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from time import monotonic
from typing import Final, TypeVar

import msgspec

from fairlead.kube.errors import RequestError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, Resource
from fairlead.webhook.binding.binding_client import PermissionRecord
from fairlead.webhook.https.review_turns import ReviewTurns

T = TypeVar("T")
TOKEN_REVIEWS: Final = ObjectRef(Resource("authentication.k8s.io", "v1", "tokenreviews"))
ACCESS_REVIEWS: Final = ObjectRef(Resource("authorization.k8s.io", "v1", "subjectaccessreviews"))
ALLOWED_S: Final = 60.0
"""Seconds for which a caller that may read is not asked about again."""
DENIED_S: Final = 10.0
"""The same for one that may not: a permission that was just given has an effect soon."""
KEPT_MAX: Final = 256
"""Greatest number of answers that are kept, of each kind."""
WITHIN_S: Final = 3.0
"""Seconds that one review may take."""
AT_ONCE: Final = 2
WAITING: Final = 30
_OK: Final = 200
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_CONSEQUENCE: Final = "metrics cannot be read"


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: Sequence[str] | None = None
    extra: Mapping[str, Sequence[str]] | None = None


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: _User = _User()


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False
    denied: bool = False


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


_decode_token: Final = msgspec.json.Decoder(_TokenReview).decode
_decode_access: Final = msgspec.json.Decoder(_AccessReview).decode


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """Decision about a caller, as a status of HTTP: 200, 401 or 403."""

    status: int
    text: str = ""

    @property
    def allowed(self) -> bool:
        """Return whether the caller may read."""
        return self.status == _OK


@dataclass(slots=True)
class _Kept:
    """Decisions by the digest of a token, for a while; the oldest make room for new ones."""

    lasts_s: float
    _by_token: dict[bytes, tuple[float, AccessDecision]] = field(default_factory=dict)

    def get(self, token: bytes, now: float) -> AccessDecision | None:
        """Return a decision that is still valid."""
        ends, decision = self._by_token.get(token, (now, None))
        return decision if now < ends else None

    def put(self, token: bytes, decision: AccessDecision, now: float) -> None:
        """Keep a decision."""
        self._by_token.pop(token, None)
        if len(self._by_token) >= KEPT_MAX:
            del self._by_token[next(iter(self._by_token))]
        self._by_token[token] = now + self.lasts_s, decision

    def __len__(self) -> int:
        return len(self._by_token)


class DelegatedAccess:
    """Access to one path."""

    def __init__(self, client: Client, path: str, clock: Callable[[], float] = monotonic) -> None:
        self._client, self._path, self._clock = client, path, clock
        self._allowed, self._denied = _Kept(ALLOWED_S), _Kept(DENIED_S)
        self._turns = ReviewTurns(AT_ONCE, 1, WAITING)
        self._permissions = PermissionRecord()

    @property
    def missing(self) -> str:
        """The missing permission without which no caller is admitted; "" if none is missing."""
        return self._permissions.missing

    @property
    def kept(self) -> int:
        """Number of decisions that are kept."""
        return len(self._allowed) + len(self._denied)

    async def decide(self, token: str, address: str) -> AccessDecision:
        """Return the decision about the bearer of a token.

        Raises RequestError if the API server cannot say it, and BusyError if too many wait for it.
        """
        digest = sha256(token.encode()).digest()
        if (known := self._known(digest)) is not None:
            return known
        async with self._turns.of(address):
            if (known := self._known(digest)) is not None:  # asked by another request meanwhile
                return known
            decision = await self._reviewed(token)
            (self._allowed if decision.allowed else self._denied).put(digest, decision, self._clock())
            return decision

    def _known(self, digest: bytes) -> AccessDecision | None:
        now = self._clock()
        return self._allowed.get(digest, now) or self._denied.get(digest, now)

    async def _reviewed(self, token: str) -> AccessDecision:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        answer = await self._ask(TOKEN_REVIEWS, review)
        status = _decoded(TOKEN_REVIEWS, answer, _decode_token).status
        if not status.authenticated or not status.user.username:
            return AccessDecision(_UNAUTHORIZED, "the API server does not accept this token")
        user = status.user
        spec = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups or (),
            "extra": user.extra or {},
            "nonResourceAttributes": {"path": self._path, "verb": "get"},
        }
        asked = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        access = _decoded(ACCESS_REVIEWS, await self._ask(ACCESS_REVIEWS, asked), _decode_access).status
        if access.denied or not access.allowed:
            return AccessDecision(_FORBIDDEN, f"{user.username} may not get {self._path}")
        return AccessDecision(_OK)

    async def _ask(self, where: ObjectRef, body: Mapping[str, object]) -> bytes:
        request = self._client.post(where, body, within_s=WITHIN_S)
        return await self._permissions.record(f"create {where.what}", _CONSEQUENCE, request)


def _decoded(where: ObjectRef, answer: bytes, decode: Callable[[bytes], T]) -> T:
    try:
        return decode(answer)
    except msgspec.DecodeError as error:
        raise RequestError("create", where, f"the reply cannot be decoded: {error}") from error
