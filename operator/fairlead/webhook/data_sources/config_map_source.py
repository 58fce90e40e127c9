"""ConfigMaps that policies name: read from one watch of the operator's namespace.

The data of others are not kept. Who may write there decides on the values, so that a policy gives its author no view of
other namespaces.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, NoReturn

from fairlead.kube.http.client import Client, Clock
from fairlead.kube.watch.config_maps import ConfigMap, follow_config_maps
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.reflector_set import ReflectorSet
from fairlead.kube.watch.store import EventSink, Key
from fairlead.policy.nodes.polls import ConfigMapPoll, PollError
from fairlead.webhook.data_sources.config_map_values import EXAMPLE, ValuesDocument, read_document

_NAME: Final = "ConfigMaps"


class DocumentState(NamedTuple):
    """Document of a poll, as the watch has it."""

    document: ValuesDocument | None
    """The last one that could be read."""
    error: str
    """Why it is not up to date, with what to do; "" if it is."""
    is_answered: bool
    """Whether the API server has said what there is."""


NOT_READ: Final = DocumentState(None, "", is_answered=False)


@dataclass(slots=True, eq=False)
class NamedConfigMap(EventSink):
    """Documents of one ConfigMap, by key. One that cannot be read, or is gone, keeps the last one with its time."""

    where: str
    changed: Callable[[], None]
    keys: frozenset[str] = frozenset()
    documents: dict[str, ValuesDocument] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    _exists: bool = False

    def want(self, keys: frozenset[str]) -> bool:
        """Set the keys to read; return whether one of them is new, so that the ConfigMap must be listed again."""
        new = keys - self.keys
        self.keys = keys
        for key in (self.documents.keys() | self.errors.keys()) - keys:
            self.documents.pop(key, None)
            self.errors.pop(key, None)
        return bool(new)

    def put(self, item: ConfigMap, /) -> None:
        """Read the documents of a ConfigMap that was added or changed."""
        self._exists = True
        self._update(lambda key: self._read(key, item))

    def remove(self, key: Key, /) -> None:  # noqa: ARG002
        """Keep the documents of a ConfigMap that was deleted."""
        self._exists = False
        self._update(self._missing)

    def end(self) -> None:
        """Note that a list did not name the ConfigMap."""
        if not self._exists:
            self._update(self._missing)

    def state(self, key: str) -> DocumentState:
        """Return a document; of a key that is not read yet, none."""
        document, error = self.documents.get(key), self.errors.get(key, "")
        return DocumentState(document, error, is_answered=document is not None or bool(error))

    def _update(self, read: Callable[[str], str]) -> None:
        before = dict(self.documents), dict(self.errors)
        for key in self.keys:
            if error := read(key):
                self.errors[key] = error
            else:
                self.errors.pop(key, None)
        if (self.documents, self.errors) != before:
            self.changed()

    def _read(self, key: str, item: ConfigMap) -> str:
        """Read one document, and return why it cannot be read, or ""."""
        if (text := item.data.get(key)) is None:
            return self._without_key(key, item)
        try:
            self.documents[key] = read_document(text)
        except PollError as error:
            return f"{self.where}, key {key}: the document {error}"
        return ""

    def _without_key(self, key: str, item: ConfigMap) -> str:
        if key in item.binaryData:
            return f"{self.where}: the key {key} is in binaryData, which is not read: write it under data, in UTF-8"
        # Its other keys are not for authors of policies, who may name any ConfigMap of the namespace.
        return f"{self.where} has no key {key}: add the key, or name another one in configMap.key"

    def _missing(self, key: str) -> str:
        if key in self.documents:
            return f"{self.where} was deleted, and its last values are kept with their time: create it again"
        return f"{self.where} does not exist: create it with the key {key} and a document such as {EXAMPLE}"


@dataclass(slots=True, eq=False)
class NamedConfigMaps:
    """ConfigMaps that policies name, among all of the namespace."""

    by_name: dict[str, NamedConfigMap] = field(default_factory=dict)
    _listed: set[NamedConfigMap] = field(default_factory=set)
    """Those that were wanted when the list began."""

    def begin(self) -> None:
        """Note which of them the list tells of."""
        self._listed = {*self.by_name.values()}

    def put(self, item: ConfigMap, /) -> None:
        """Read the documents of one."""
        if (found := self.by_name.get(item.metadata.name)) is not None:
            found.put(item)

    def remove(self, key: Key, /) -> None:
        """Note that one was deleted."""
        if (found := self.by_name.get(key[1])) is not None:
            found.remove(key)

    def end(self) -> None:
        """Note which of them do not exist."""
        for one in self._listed:
            one.end()
        self._listed = set()


class ConfigMapSource:
    """Documents in the ConfigMaps that policies name: one watch for all of them, as long as there are any."""

    def __init__(
        self, client: Client, namespace: str, changed: Callable[[str], None], *, clock: Clock | None = None
    ) -> None:
        """Call `changed` with the name of a ConfigMap when one of its documents, or what is wrong with it, changes."""
        self._client, self._namespace, self._changed, self._clock = client, namespace, changed, clock
        self._named = NamedConfigMaps()
        self._watches = ReflectorSet()

    @property
    def reflectors(self) -> Mapping[str, Reflector[Any]]:
        """Return the watch, if there is one, by its name in /readyz and metrics."""
        return self._watches.reflectors

    def want(self, polls: Iterable[ConfigMapPoll]) -> None:
        """Set which documents are read; others are forgotten."""
        keys: dict[str, set[str]] = {}
        for poll in polls:
            keys.setdefault(poll.config_map, set()).add(poll.key)
        before = self._named.by_name
        self._named.by_name = {name: before.get(name) or self._config_map(name) for name in keys}
        are_new = [one.want(frozenset(keys[name])) for name, one in self._named.by_name.items()]
        before_watches = self.reflectors
        self._watches.want({_NAME: self._follow} if keys else {})
        if _NAME in before_watches and any(are_new):
            before_watches[_NAME].relist()

    def state(self, poll: ConfigMapPoll) -> DocumentState:
        """Return the document of a poll, and why it is not up to date."""
        if (one := self._named.by_name.get(poll.config_map)) is None or _NAME not in self.reflectors:
            return NOT_READ
        found, watch = one.state(poll.key), self.reflectors[_NAME].state
        # A watch that has begun is resumed by itself; what keeps it from beginning, or will not pass, is an error.
        lost = watch.missing_permission or ("" if found.is_answered else watch.last_error)
        return found._replace(error=found.error or lost)

    async def run(self) -> NoReturn:
        """Watch what is wanted until cancelled."""
        await self._watches.run()

    def _follow(self) -> Reflector[ConfigMap]:
        return follow_config_maps(self._client, self._namespace, self._is_wanted, self._named, clock=self._clock)

    def _is_wanted(self, name: str) -> bool:
        return name in self._named.by_name

    def _config_map(self, name: str) -> NamedConfigMap:
        return NamedConfigMap(f"ConfigMap {self._namespace}/{name}", lambda: self._changed(name))
