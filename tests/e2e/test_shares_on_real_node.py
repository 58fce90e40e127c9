"""Containers on a real node see the card that the ledger says, whichever way the device plugin finds their pod."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from extender import Stage
from fairlead.grants.entry import LedgerEntry, decode_entry
from support.process.serving import Serving
from testbed import tables
from testbed.api import Api, wait_for
from testbed.device_plugin import CARD_FILE, COUNT, MEMORY, DevicePlugin, Match
from testbed.fixtures import Cluster, Kubectl
from testbed.node_config import NODE, POD_IMAGE

PODS, AT_ONCE = 64, 8
CARDS, UNITS, AMOUNT = 4, 16, 2
_SHARE: dict[str, Any] = {"name": "gpu", "shares": [{"resource": MEMORY}], "layout": {"count": COUNT}}


@dataclass(slots=True, eq=False)
class Grants:
    """All grants that a ledger ever had: entries of pods that ended are removed by later writes."""

    api: Api
    path: str
    cards: dict[str, set[str]] = field(default_factory=dict)
    """By UID of the pod."""
    most: Counter[str] = field(default_factory=Counter)
    """The most that was ever granted of each card at the same time."""
    _version: str = "0"
    _end: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def followed(self) -> Iterator[None]:
        thread = threading.Thread(target=self._follow, name="grants", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join()

    def _follow(self) -> None:
        while not self._end.is_set():
            query = {"watch": "true", "labelSelector": "fairlead.dev/grants", "timeoutSeconds": "2"}
            for line in self.api.lines(self.path, resourceVersion=self._version, **query):
                found = json.loads(line)["object"]
                self._version = found["metadata"]["resourceVersion"]
                now = Counter[str]()
                for uid, text in (found.get("data") or {}).items():
                    entry = decode_entry(text)
                    assert isinstance(entry, LedgerEntry)
                    for one in entry.grant["gpu"]:
                        self.cards.setdefault(uid, set()).add(one.id)
                        now[one.id] += one.amounts[MEMORY]
                self.most |= now


@pytest.mark.parametrize(
    ("match", "record", "arguments"),
    [("gpushare", "Gpushare", ("env", "ALIYUN_COM_GPU_MEM_IDX")), ("exact", "Fairlead", ("cat", CARD_FILE))],
)
def test_containers_of_equal_pods_see_the_card_of_the_ledger(
    cluster: Cluster,
    stage: Stage,
    serving: Serving,
    kubectl: Kubectl,
    device_plugin: DevicePlugin,
    pytestconfig: pytest.Config,
    match: Match,
    record: str,
    arguments: tuple[str, ...],
) -> None:
    device_plugin.up(match, cards=CARDS, units=UNITS)
    serving.put("gpu", binding={"deviceShare": [_SHARE | {"choose": "WorstFit", "record": record}]})
    serving.start()
    stage.start(*serving.entries(), podInitialBackoffSeconds=1, podMaxBackoffSeconds=1)
    container = {
        "name": "pod",
        "image": POD_IMAGE,
        "imagePullPolicy": "Never",
        "args": [*arguments],
        "resources": {"limits": {MEMORY: str(AMOUNT)}},
    }
    spec = {
        "schedulerName": stage.name,
        "restartPolicy": "Never",
        "nodeSelector": {"kubernetes.io/hostname": NODE},
        "containers": [container],
    }

    def ended(name: str) -> tuple[str, str, str]:
        """Make a pod; its UID, its phase once it has ended, and what its container saw."""
        made = cluster.api.create(stage.path, {"metadata": {"name": name}, "spec": spec})["metadata"]["uid"]

        def phase() -> str | None:
            seen = str(stage.pod(name)["status"].get("phase", ""))
            return seen if seen in ("Succeeded", "Failed") else None

        found = wait_for(f"{name} to end", phase, timeout_s=120)
        return made, found, kubectl("logs", "-n", stage.name, name).strip()

    grants = Grants(Api(cluster.kubeconfig), f"/api/v1/namespaces/{stage.name}/configmaps")
    with grants.followed(), ThreadPoolExecutor(AT_ONCE) as pool:
        names = [f"pod-{number}" for number in range(PODS)]
        saw = {uid: (phase, {card}) for uid, phase, card in pool.map(ended, names)}
        wait_for("the watch to tell of all", lambda: len(grants.cards) == PODS)
    wrong = {uid for uid, (phase, card) in saw.items() if phase != "Succeeded" or card != grants.cards[uid]}
    by_card = Counter(card for cards in grants.cards.values() for card in cards)
    counts = ", ".join(f"{card}: {count}" for card, count in sorted(by_card.items()))
    said = f"{PODS} pods, {AT_ONCE} at once: {len(wrong)} saw another card; pods by card {counts}"
    tables.leave(pytestconfig, f"cards that containers see: a plugin that matches as {match}", said)
    assert not wrong
    assert max(grants.most.values()) <= UNITS
    assert len(by_card) > 1, "with one card, none could be mistaken"
