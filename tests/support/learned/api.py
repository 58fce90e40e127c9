"""ConfigMaps of an API server that can lose answers, refuse, and be changed by others."""

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from fairlead.kube.errors import ClusterError, ConflictError, NotFoundError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef


class StateApi(Client):
    """A client of it."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.refuse: ClusterError | None = None
        """Error of the next write, which is not carried out."""
        self.lose: ClusterError | None = None
        """Error of the next write, which is carried out."""
        self.writes: list[str] = []
        self._version = 100

    async def create(self, where: ObjectRef, body: object, decode: Callable[[bytes], Any]) -> Any:
        name = self._named(body)
        if name in self.objects:
            raise ConflictError("create", where, "it exists", status=409, reason="AlreadyExists")
        return self._written("create", name, body, decode)

    async def replace(self, where: ObjectRef, body: object, decode: Callable[[bytes], Any]) -> Any:
        name = self._named(body)
        if name not in self.objects:
            raise NotFoundError("update", where, "it is gone", status=404)
        assert isinstance(body, Mapping)
        if self.objects[name]["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
            raise ConflictError("update", where, "it has another version", status=409)
        return self._written("replace", name, body, decode)

    async def get(self, where: ObjectRef, decode: Callable[[bytes], Any], query: Any = None) -> Any:
        if where.name not in self.objects:
            raise NotFoundError("get", where, "it is gone", status=404)
        return decode(json.dumps(self.objects[where.name]).encode())

    def touch(self, name: str) -> None:
        """Give an object another version, as a change by somebody else does."""
        self._version += 1
        self.objects[name]["metadata"]["resourceVersion"] = str(self._version)

    def _written(self, verb: str, name: str, body: object, decode: Callable[[bytes], Any]) -> Any:
        refused, self.refuse = self.refuse, None
        if refused is not None:
            raise refused
        assert isinstance(body, Mapping)
        self.objects[name] = deepcopy(dict(body))
        self.touch(name)
        self.writes.append(f"{verb} {name}")
        lost, self.lose = self.lose, None
        if lost is not None:
            raise lost
        return decode(json.dumps(self.objects[name]).encode())

    @staticmethod
    def _named(body: object) -> str:
        assert isinstance(body, Mapping)
        return str(body["metadata"]["name"])
