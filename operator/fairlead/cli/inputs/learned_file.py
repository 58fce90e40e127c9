"""Learned state of `--learned FILE`: the output of `fairlead learned -o yaml`, or ConfigMaps."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final

import msgspec
from pydantic import Field

from fairlead.api.errors import FieldPath, InvalidObjectError
from fairlead.api.names import POLICY_UID_ANNOTATION
from fairlead.api.params import Params
from fairlead.api.parse import parse_params
from fairlead.cli.console.exits import CommandError
from fairlead.cli.inputs.files import File, files
from fairlead.learned.published import LearnedState
from fairlead.plain_data import document
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.nodes.annotated_values import moment
from fairlead.policy.nodes.node_table import Nodes
from fairlead.simulation.learned_states import state_of
from fairlead.simulation.rule_notes import RuleKey
from fairlead.simulation.snapshot import Snapshot, SnapshotObject, spelt
from fairlead.suites.learned_values import GivenToRule, config_maps_of, given_to_rules, rules_that_learn
from fairlead.suites.suite import LearnedOfRule, Object
from fairlead.time_units import SECOND_NS

GET: Final = "fairlead learned POLICY -o yaml"
_BYTES_MAX: Final = 256 << 20
_VALUES_MAX: Final = 10_000_000
_KIND: Final = re.compile(rb"^kind:", re.MULTILINE)


class LearnedFile(Params):
    """Output of `fairlead learned` for programs, as far as it is read back."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    learned: Annotated[dict[str, LearnedOfRule], Field(min_length=1)]
    """What rules have learned, by rule, as `fairlead learned POLICY -o yaml` prints it."""
    time: str | None = None
    """Time at which the ages are right. The time that rules see when absent."""
    rules: Any = None
    """Not read: it follows from the rest."""
    unclaimed: Any = None
    """Not read."""


@dataclass(slots=True)
class LearnedInput:
    """Learned state that files give."""

    sources: dict[RuleKey, str] = field(default_factory=dict)
    """Files that say what rules have learned, by rule."""
    config_maps: list[Object] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def put_into(self, snapshot: Snapshot) -> Collection[RuleKey]:
        """Let a snapshot say this of these rules, and nothing else; return the rules."""
        if not self.sources:
            return ()
        others = {key: held for key, held in snapshot.learned.items() if _rule_of(held) not in self.sources}
        given = {("", f"{place}"): one for place, one in enumerate(self.config_maps)}
        snapshot.learned = others | {
            key: SnapshotObject(msgspec.json.encode(one), "--learned") for key, one in given.items()
        }
        return self.sources.keys()


def read_learned(
    names: Sequence[str], policies: Sequence[CompiledPolicy], nodes: Nodes, now: int, where: str
) -> LearnedInput:
    """Return what files say of rules and the nodes of `where`. Raises CommandError and SnapshotError."""
    found, objects = LearnedInput(), list[File]()
    uids = {view.name: view.uid for view in nodes.views if view is not None} if names else {}
    for file in files(names, _BYTES_MAX):
        if why := file.unreadable or file.empty or ("is too large" if file.too_large else ""):
            raise CommandError(f"{file.name}: {why}")
        if _has_objects(file):
            objects.append(file)
        elif (written := _plain(file)) is None:
            raise CommandError(f"{file.name}: the file is empty; write it with `{GET}`")
        elif isinstance(written, dict) and "kind" in written:
            objects.append(file)
        else:
            _add_written(found, file.name, written, policies, uids, now, where)
    if objects:
        _add_config_maps(found, objects, policies)
    return found


def _has_objects(file: File) -> bool:
    """Return whether a file has objects of the API, as far as that can be told at a glance."""
    if not file.data.lstrip().startswith(b"{"):
        return bool(_KIND.search(file.data))
    try:
        return "kind" in msgspec.json.decode(file.data, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError as error:  # it has several documents, or is YAML, or is broken
        return "trailing" in str(error)


def _plain(file: File) -> Any:
    try:
        return msgspec.json.decode(file.data)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return document(file.data, _VALUES_MAX)
    except ValueError as error:
        raise CommandError(f"{file.name}: this is neither JSON nor YAML: {error}") from None


def _add_written(
    into: LearnedInput,
    file: str,
    written: Any,
    policies: Sequence[CompiledPolicy],
    uids: Mapping[str, str],
    now: int,
    where: str,
) -> None:
    try:
        read = parse_params(written, LearnedFile)
        at = now if read.time is None else moment(read.time)
        if at is None:
            raise CommandError(f"{file}: time: {read.time!r} is not a time; write it as 2027-01-15T08:00:00Z")
        learned = {name: (_path(name), one) for name, one in read.learned.items()}
        given = given_to_rules(learned, policies, "policy that is used here")
        for key, one in given.items():
            _claim(into, key, file, one)
        into.config_maps += config_maps_of(given.values(), uids, at // SECOND_NS, f"in {where}")
    except InvalidObjectError as error:
        first, *more = error.errors
        raise CommandError(f"{file}: {first}" + (f" ({len(more)} more errors)" if more else "")) from None


def _path(name: str) -> FieldPath:
    return "learned", name


def _claim(into: LearnedInput, key: RuleKey, file: str, state: GivenToRule) -> None:
    if (other := into.sources.setdefault(key, file)) is not file:
        field_ = ".".join(map(str, state.path))
        raise CommandError(f"{file}: {field_}: {other} says what this rule has learned, too; give one of them")


def _add_config_maps(into: LearnedInput, objects: Sequence[File], policies: Sequence[CompiledPolicy]) -> None:
    snapshot = Snapshot()
    for file in objects:
        snapshot.read(file.name, file.data)
    of_files, used, rules = dict[RuleKey, str](), set[str](), rules_that_learn(policies)
    for key, held in snapshot.learned.items():
        state = _state(held, spelt(key))
        rule = None if state is None else (state.rule.policy, state.rule.name)
        versions = [one for one in rules if one.key == rule]
        if state is None or rule is None or not versions:
            continue
        if state.document.fault:
            raise CommandError(f"{held.file}: {state.document.fault}")
        if rule in into.sources:
            raise CommandError(
                f"{held.file}: {into.sources[rule]} says what {'/'.join(rule)} has learned, too; give one of them"
            )
        used.add(held.file)
        if rule not in of_files and any(one.read.meaning != state.rule.meaning for one in versions):
            into.notes.append(
                f"{held.file}: {'/'.join(rule)} has learned this with another type, settle, halfLife or resources: "
                "with those of its policy it begins from nothing"
            )
        of_files[rule] = held.file
        into.config_maps += _for_policies(
            held, {one.policy.uid for one in versions if one.read.meaning == state.rule.meaning}
        )
    for file in objects:
        if file.name not in used:
            raise CommandError(
                f"{file.name}: no ConfigMap in it has what a rule of these policies has learned; write it with "
                f"`{GET}`, or with `kubectl get configmaps -n fairlead-system -l fairlead.dev/learned -o yaml`"
            )
    into.sources |= of_files


def _for_policies(config_map: SnapshotObject, uids: set[str]) -> Iterator[Object]:
    """Yield a ConfigMap for each UID of its policy: it may be from another cluster."""
    obj = msgspec.json.decode(config_map.raw)
    metadata = obj["metadata"]
    for uid in sorted(uids):
        annotations = {**metadata["annotations"], **({POLICY_UID_ANNOTATION: uid} if uid else {})}
        yield {**obj, "metadata": {**metadata, "annotations": annotations}}


def _rule_of(config_map: SnapshotObject) -> RuleKey | None:
    state = _state(config_map, "")
    return None if state is None else (state.rule.policy, state.rule.name)


def _state(config_map: SnapshotObject, name: str) -> LearnedState | None:
    try:
        return state_of(config_map.raw)
    except (msgspec.DecodeError, ValueError, TypeError, AttributeError) as error:
        raise CommandError(f"{config_map.file}: configmap {name} cannot be read: {error}") from None
