"""Requests to an API server, from its audit log, and the rights that they took. Pure, but for reading the file."""

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from itertools import product
from pathlib import Path

from fairlead.render.rbac import ApiRequest, Place, RbacRule, RoleGrant, allows
from testbed.api import Object

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredRequest:
    """One request, once it was answered; of a watch, once it had begun."""

    at: datetime
    """When it came."""
    user: str
    agent: str
    verb: str
    group: str = ""
    resource: str = ""
    """With its subresource, as in `pods/binding`; empty for what is no resource."""
    namespace: str = ""
    name: str = ""
    code: int

    @property
    def is_write(self) -> bool:
        """Return whether it was to change something."""
        return self.verb in WRITES

    def __str__(self) -> str:
        """For whoever reads why a test failed."""
        where = "/".join(part for part in (self.namespace, self.name) if part)
        group = f".{self.group}" if self.group else ""
        who = self.user.removeprefix(_ACCOUNT)
        return f"{self.at:%T.%f} {who} {self.verb} {self.resource}{group} {where}: {self.code}"


def lines(log: Path) -> Iterator[str]:
    """All there are, the oldest first; those before the last hundred megabytes stand in files beside it."""
    for file in (*sorted(log.parent.glob(f"{log.stem}-*{log.suffix}")), log):
        with file.open() as text:
            yield from (line for line in text if line.endswith("\n"))  # else it is just being written


def answered_requests(written: Iterable[str]) -> Iterator[AnsweredRequest]:
    """Return the requests of the files, in the order in which they were answered."""
    for line in written:
        event = json.loads(line)
        code = event.get("responseStatus", {}).get("code", 0)
        begun = event["stage"] == "ResponseStarted"
        if begun != (event["verb"] == "watch" and code < HTTPStatus.BAD_REQUEST):
            continue  # what goes on for long is told of when it begins and when it ends
        about = event.get("objectRef", {})
        sub = about.get("subresource", "")
        yield AnsweredRequest(
            at=datetime.fromisoformat(event["requestReceivedTimestamp"]),
            user=event["user"].get("username", ""),
            agent=event.get("userAgent", ""),
            verb=event["verb"],
            group=about.get("apiGroup", ""),
            resource=about.get("resource", "") + (f"/{sub}" if sub else ""),
            namespace=about.get("namespace", ""),
            name=about.get("name", ""),
            code=code,
        )


def account(namespace: str, name: str) -> str:
    """Return the name of a service account as a user."""
    return f"{_ACCOUNT}{namespace}:{name}"


def by(requests: Iterable[AnsweredRequest], *users: str, since: datetime | None = None) -> list[AnsweredRequest]:
    """Return the requests of these users, from some time on; a name may end with `*`."""
    return [
        one for one in requests if any(_is(one.user, user) for user in users) and (since is None or one.at >= since)
    ]


def _is(user: str, pattern: str) -> bool:
    return user.startswith(pattern[:-1]) if pattern.endswith("*") else user == pattern


def denied(requests: Iterable[AnsweredRequest]) -> list[AnsweredRequest]:
    """Return the requests that were refused for want of a right."""
    return [one for one in requests if one.code == HTTPStatus.FORBIDDEN]


def writes(requests: Iterable[AnsweredRequest], *, but: Collection[str] = ()) -> list[AnsweredRequest]:
    """Return the requests that were to change something, but for these objects, called `leases fairlead`."""
    return [one for one in requests if one.is_write and f"{one.resource} {one.name}" not in but]


def rights(grants: Iterable[RoleGrant]) -> set[ApiRequest]:
    """Return all that roles allow, one by one."""
    return {
        ApiRequest(verb, rule.group, resource, grant.place, name)
        for grant in grants
        for rule in grant.rules
        for resource in rule.resources
        for verb in rule.verbs
        for name in rule.names or ("",)
    }


def used(grants: Iterable[RoleGrant], requests: Iterable[ApiRequest]) -> set[ApiRequest]:
    """Return the rights that these requests take."""
    return {
        ApiRequest(request.verb, rule.group, request.resource, grant.place, request.name if rule.names else "")
        for request in requests
        for grant in grants
        for rule in grant.rules
        if grant.place in ("cluster", request.place) and _alone(grant, rule, request)
    }


def _alone(grant: RoleGrant, rule: RbacRule, request: ApiRequest) -> bool:
    return allows([RoleGrant(grant.place, (rule,))], request)


def needed(requests: Iterable[AnsweredRequest], own: str) -> Iterator[ApiRequest]:
    """The rights that it took: who applies what is not there yet must be allowed to create it, too."""
    for one in requests:
        for verb in {one.verb, "create"} if one.is_write and one.code == HTTPStatus.CREATED else {one.verb}:
            yield ApiRequest(verb, one.group, one.resource, _place(one.namespace, own), one.name)


def granted(made: Iterable[Object], own: str) -> Iterator[ApiRequest]:
    """The rights that it takes to make roles and bindings, which are asked for beside the request and never logged."""
    for one in made:
        place = _place(one["metadata"].get("namespace", ""), own)
        for rule in one.get("rules", ()):
            for group, resource, verb in product(rule["apiGroups"], rule["resources"], rule["verbs"]):
                yield ApiRequest(verb, group, resource, place)
        if role := one.get("roleRef"):
            yield ApiRequest("bind", role["apiGroup"], f"{role['kind'].lower()}s", place, role["name"])


def _place(namespace: str, own: str) -> Place:
    """Anywhere else only what holds everywhere holds."""
    places: dict[str, Place] = {own: "own", "kube-system": "kube-system", "default": "default"}
    return places.get(namespace, "cluster")
