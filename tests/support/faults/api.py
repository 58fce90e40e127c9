"""An API server in memory: versions, generations, finalizers, preconditions, server-side apply of one manager a field.

What it refuses, the real one refuses. It fills in no defaults and checks no schema.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import msgspec

from fairlead.kube.errors import refusal
from fairlead.kube.http.transport import Request

Object = dict[str, Any]
Key = tuple[str, str, str, str]
"""Group, plural, namespace and name."""
WRITES = frozenset({"create", "update", "patch", "delete"})
_encoded = msgspec.json.encode
_KEPT = ("uid", "resourceVersion", "creationTimestamp", "generation", "deletionTimestamp")
_BUILT_IN = {
    "configmaps": "ConfigMap", "secrets": "Secret", "serviceaccounts": "ServiceAccount", "deployments": "Deployment",
    "leases": "Lease", "networkpolicies": "NetworkPolicy", "poddisruptionbudgets": "PodDisruptionBudget",
    "clusterrolebindings": "ClusterRoleBinding", "rolebindings": "RoleBinding", "roles": "Role", "pods": "Pod",
    "csistoragecapacities": "CSIStorageCapacity", "events": "Event",
    "validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
}  # fmt: skip


@dataclass
class Happened:
    """One event of a watch."""

    version: int
    type: str
    key: Key
    obj: Object


@dataclass
class Api:
    """All objects, and what happened to them."""

    now: Callable[[], str]
    objects: dict[Key, Object] = field(default_factory=dict)
    applied: dict[tuple[Key, str], Object] = field(default_factory=dict)
    version: int = 0
    history: list[Happened] = field(default_factory=list)
    heard: list[Callable[[Happened], None]] = field(default_factory=list)
    invalid: str = ""
    """No Deployment is taken that holds this."""
    rules: Mapping[str, Iterable[str]] | None = None
    """The fields of rules that the CRD knows, by their lists; None: it tells nobody."""

    def copy(self) -> "Api":
        """Another one with the same objects, of which nobody is told."""
        objects = {key: _copied(one) for key, one in self.objects.items()}
        return Api(self.now, objects, {key: _copied(one) for key, one in self.applied.items()}, self.version)

    def answer(self, ask: Request) -> bytes:
        """As the API server does. Raises RequestError."""
        at, body = ask.where, body_of(ask)
        if at.resource.plural == "version":
            return b'{"gitVersion": "v1.37.1"}'
        if at.resource.plural == "openapi" and self.rules is not None:
            return _encoded(described(self.rules))
        if at.subresource == "log":
            return b""
        key = (at.resource.group, at.resource.plural, at.namespace, at.name)
        if ask.verb == "list":
            return self._list(ask, key)
        if self.invalid and self.invalid.encode() in _encoded(body) and at.resource.plural == "deployments":
            raise refused(ask, 422, "Invalid", f"{self.invalid} cannot be had")
        if ask.verb == "create":
            name = at.name or body["metadata"]["name"]
            return _encoded(self._created(ask, (*key[:3], name), body))
        if ask.verb == "patch" and key not in self.objects and "apply" in ask.content_type and not at.subresource:
            self.applied[key, ask.query["fieldManager"]] = _copied(body)
            return _encoded(self._created(ask, key, body))
        live = self.objects.get(key)
        if live is None:
            raise refused(ask, 404, "NotFound", f"{at} is not there")
        if ask.verb == "get":
            return _encoded(live)
        return _encoded(self._changed(ask, key, live, body))

    def put(self, key: Key, obj: Object) -> Object:
        """Have it there; what changes nothing is no event."""
        before = self.objects.get(key)
        made: Object = _copied(obj)
        meta = made.setdefault("metadata", {})
        meta["name"] = key[3]
        if key[2]:
            meta["namespace"] = key[2]
        if before is None:
            meta |= {"uid": str(uuid4()), "creationTimestamp": self.now(), "generation": 1}
        else:
            meta |= {one: before["metadata"][one] for one in _KEPT if one in before["metadata"]}
            if made == before:
                return before
            meta["generation"] += made.get("spec") != before.get("spec")
        self.version += 1
        meta["resourceVersion"] = str(self.version)
        if "deletionTimestamp" in meta and not meta.get("finalizers"):
            return self._gone(key, made)
        self.objects[key] = made
        self._tell("ADDED" if before is None else "MODIFIED", key, made)
        return made

    def edit(self, key: Key, **fields: Any) -> Object:
        """Merge into what is there, as a person would."""
        return self.put(key, _merged(self.objects[key], fields))

    def delete(self, key: Key) -> None:
        """Gone, or on its way where a finalizer holds it."""
        live = self.objects[key]
        if live["metadata"].get("finalizers"):
            if "deletionTimestamp" not in live["metadata"]:
                self.version += 1
                meta = {**live["metadata"], "deletionTimestamp": self.now(), "resourceVersion": str(self.version)}
                self.objects[key] = {**live, "metadata": meta}
                self._tell("MODIFIED", key, self.objects[key])
            return
        self.version += 1
        self._gone(key, live)

    def of(self, plural: str) -> Iterator[tuple[Key, Object]]:
        """All of a kind."""
        return iter([(key, one) for key, one in sorted(self.objects.items()) if key[1] == plural])

    def _created(self, ask: Request, key: Key, body: Object) -> Object:
        if key in self.objects:
            raise refused(ask, 409, "AlreadyExists", "it is there already")
        kind = {"apiVersion": f"{ask.where.resource.group or ''}/{ask.where.resource.version}".lstrip("/")}
        return self.put(key, {**kind, "kind": _BUILT_IN.get(key[1], ""), **body})

    def _changed(self, ask: Request, key: Key, live: Object, body: Object) -> Object:
        given = body.get("preconditions", {}) if ask.verb == "delete" else body.get("metadata", {})
        for one in ("uid", "resourceVersion"):
            if given.get(one, live["metadata"][one]) != live["metadata"][one]:
                raise refused(ask, 409, "Conflict", f"its {one} is another")
        if ask.verb == "delete":
            self.delete(key)
            return {}
        if ask.verb == "update":
            made = body
        elif "apply" in ask.content_type:
            before = self.applied.get((key, ask.query["fieldManager"]), {})
            made = _applied(live, body, before)
        else:
            made = _merged(live, body)
        self._check(ask, live, made)
        if ask.where.subresource == "status":
            made = {**live, "status": made.get("status", {})}
        elif "status" in live:
            made = {**made, "status": live["status"]}
        done = self.put(key, made)
        if "apply" in ask.content_type:
            self.applied[key, ask.query["fieldManager"]] = _copied(body)
        return done

    def _check(self, ask: Request, live: Object, made: Object) -> None:
        fixed = {
            "what is immutable": live.get("immutable") and live.get("data") != made.get("data"),
            "a roleRef": live.get("roleRef") != made.get("roleRef"),
            "a selector": live.get("kind") == "Deployment" and live["spec"]["selector"] != made["spec"]["selector"],
        }
        for what, changed in fixed.items():
            if changed:
                raise refused(ask, 422, "Invalid", f"{what} cannot be changed")

    def _list(self, ask: Request, key: Key) -> bytes:
        found = [
            one if key[0] == "fairlead.dev" else {name: one[name] for name in one if name not in ("apiVersion", "kind")}
            for at, one in sorted(self.objects.items())
            if at[:2] == key[:2] and key[2] in ("", at[2]) and chosen(ask.query, one)
        ]
        return _encoded({"metadata": {"resourceVersion": str(self.version)}, "items": found})

    def _gone(self, key: Key, obj: Object) -> Object:
        self.objects.pop(key)
        for one in [one for one in self.applied if one[0] == key]:
            del self.applied[one]
        self._tell("DELETED", key, obj)
        return obj

    def _tell(self, kind: str, key: Key, obj: Object) -> None:
        happened = Happened(self.version, kind, key, _copied(obj))
        self.history.append(happened)
        for one in [*self.heard]:
            one(happened)


def body_of(ask: Request) -> Object:
    """Return the body as the API server reads it; without one, an empty object."""
    body: Object = _copied(ask.body) if ask.body is not None else {}
    return body


def _copied(obj: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(obj))


def chosen(query: Mapping[str, str], obj: Object) -> bool:
    """Return whether the selectors of a list or a watch match."""
    labels = obj["metadata"].get("labels", {})
    for text in filter(None, query.get("labelSelector", "").split(",")):
        name, equals, value = text.partition("=")
        if name.endswith("!"):
            if labels.get(name[:-1]) == value:
                return False
        elif name not in labels or (equals and labels[name] != value):
            return False
    for text in filter(None, query.get("fieldSelector", "").split(",")):
        path, _, value = text.partition("=")
        found: Any = obj
        for part in path.removesuffix("!").split("."):
            found = found.get(part, {} if part in ("spec", "status", "metadata") else "")
        if (found == value) == path.endswith("!"):
            return False
    return True


def _applied(live: Any, wanted: Any, before: Any) -> Any:
    """Maps are merged, and what was applied before and is not any more goes; lists are one manager's as a whole."""
    if not isinstance(wanted, dict) or not isinstance(live, dict):
        return _copied(wanted)
    had = before if isinstance(before, dict) else {}
    kept = {key: one for key, one in live.items() if key in wanted or key not in had}
    if kept.get("webhooks") and "webhooks" in wanted:
        (hook,), (mine,) = kept["webhooks"], wanted["webhooks"]
        return kept | {"webhooks": [_applied(hook, mine, {})]}
    return kept | {key: _applied(live.get(key), one, had.get(key)) for key, one in wanted.items()}


def _merged(live: Any, given: Any) -> Any:
    if not isinstance(given, dict):
        return _copied(given)
    found = dict(live) if isinstance(live, dict) else {}
    for key, one in given.items():
        if one is None:
            found.pop(key, None)
        else:
            found[key] = _merged(found.get(key), one)
    return found


def refused(ask: Request, status: int, reason: str, message: str) -> Exception:
    body = msgspec.json.encode({"code": status, "reason": reason, "message": message})
    return refusal(ask.verb, ask.where, status, body)


def described(rules: Mapping[str, Iterable[str]]) -> Object:
    """Description of a CRD with these fields, as an API server gives it."""
    spec = {name: {"type": "array", "items": {"properties": {one: {} for one in of}}} for name, of in rules.items()}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    return {"components": {"schemas": {"dev.fairlead.v1alpha1.SchedulerExtenderPolicy": schema, "other": {}}}}
