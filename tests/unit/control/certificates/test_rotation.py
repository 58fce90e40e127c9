"""The authority is rotated while replicas and schedulers come, go and take what is new when they like.

After each thing that happens every scheduler can call every replica: each has signed with what the other one trusts.
"""

import random
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.control.certificates.issuer import SchedulerCertificates
from fairlead.kube.errors import ConflictError
from fairlead.kube.watch.secrets import Secret, Secrets
from fairlead.pki import parsing
from fairlead.pki.authority import Phase, read
from fairlead.pki.issuing import Pair
from fairlead.pki.rotation import ROTATE
from fairlead.process.replica_certificates import ReplicaCertificates
from support.pki.authorities import DAY, NOW, KeptSecrets, at_once, authority, handshake

if TYPE_CHECKING:
    from fairlead.pki.rotation import ReplicaTrust

CA = "fairlead-ca"
HOST = "fairlead.fairlead-system.svc"


@lru_cache(4096)
def believes(bundle: bytes, certificate: bytes) -> bool:
    return parsing.read_certificate(certificate, [bundle]).issuer != ""


@dataclass(eq=False)
class Pod:
    """A scheduler's: it knows what it was started with, and shows what is mounted by now."""

    known: bytes
    mounted: dict[str, bytes]


@dataclass
class Deployment:
    """Its pods are replaced one by one."""

    template: bytes
    pods: list[Pod] = field(default_factory=list)

    @property
    def rolled(self) -> str:
        return parsing.digest(self.template) if all(pod.known == self.template for pod in self.pods) else ""


class World:
    """All of it; things happen by their names, to whomever the number says."""

    def __init__(self) -> None:
        self.now: datetime = NOW
        self.secrets = KeptSecrets()
        self.certificates = SchedulerCertificates(
            cast("Secrets", self.secrets), CA, lambda name: f"{name}-client", lambda _: {}, lambda: self.now
        )
        self.replicas: dict[str, ReplicaCertificates] = {}
        self.silent: set[str] = set()
        self.schedulers: dict[str, Deployment] = {}
        self.gathered: tuple[dict[str, str], dict[str, ReplicaTrust | None]] = {}, {}
        self.names = 0
        at_once(self.certificates.ensure())
        self.replica_comes(0)
        self.scheduler_comes(0)

    @property
    def secret(self) -> Secret:
        return self.secrets.kept[CA]

    @property
    def phase(self) -> Phase:
        return read(self.secret.data).phase

    def replica_comes(self, _: int) -> None:
        self.names += 1
        self.replicas[f"r{self.names}"] = one = ReplicaCertificates(frozenset({HOST}), lambda: self.now, lambda _: None)
        one.put(self.secret)

    def replica_goes(self, which: int) -> None:
        if len(self.replicas) > 1:
            del self.replicas[sorted(self.replicas)[which % len(self.replicas)]]

    def replica_loads(self, which: int) -> None:
        [*self.replicas.values()][which % len(self.replicas)].put(self.secret)

    def replica_is_silent(self, which: int) -> None:
        self.silent ^= {sorted(self.replicas)[which % len(self.replicas)]}

    def scheduler_comes(self, _: int) -> None:
        self.names += 1
        name = f"s{self.names}"
        rolled = {other: one.rolled for other, one in self.schedulers.items()}
        at_once(self.certificates.step({**rolled, name: ""}, {}))
        self.schedulers[name] = Deployment(read(self.secret.data).server_ca_bundle)
        for _ in range(2):
            self.start_pod(name)

    def start_pod(self, name: str) -> None:
        one, secret = self.schedulers[name], self.secrets.kept[f"{name}-client"]
        one.pods.append(Pod(one.template, secret.data))

    def scheduler_goes(self, which: int) -> None:
        if len(self.schedulers) > 1:
            name = sorted(self.schedulers)[which % len(self.schedulers)]
            del self.schedulers[name], self.secrets.kept[f"{name}-client"]

    def pod_rolls(self, which: int) -> None:
        """An old pod is replaced, or one of the same kind is lost."""
        name = sorted(self.schedulers)[which % len(self.schedulers)]
        one = self.schedulers[name]
        old = [pod for pod in one.pods if pod.known != one.template]
        one.pods.remove(old[0] if old else one.pods[which % len(one.pods)])
        self.start_pod(name)

    def pod_reads(self, which: int) -> None:
        """What is mounted becomes what is in the Secret."""
        name = sorted(self.schedulers)[which % len(self.schedulers)]
        pods = self.schedulers[name].pods
        pods[which // 7 % len(pods)].mounted = self.secrets.kept[f"{name}-client"].data

    def gather(self, _: int) -> None:
        rolled = {name: one.rolled for name, one in self.schedulers.items()}
        self.gathered = (
            rolled,
            {name: None if name in self.silent else one.state for name, one in self.replicas.items()},
        )

    def leader_passes(self, _: int) -> None:
        """With what it has gathered, which may be old."""
        rolled, replicas = self.gathered
        try:
            passed = at_once(self.certificates.step({name: rolled.get(name, "") for name in self.schedulers}, replicas))
        except ConflictError:
            return
        for one in self.schedulers.values():
            one.template = passed.authority.server_ca_bundle

    def a_write_is_refused(self, which: int) -> None:
        """One of those that the next pass makes; nothing is rendered then."""
        self.secrets.good_writes = which % 3
        self.leader_passes(0)
        self.secrets.good_writes = -1

    def somebody_asks(self, _: int) -> None:
        self.secrets.annotate(CA, ROTATE)

    def a_secret_is_spoilt(self, which: int) -> None:
        name = f"{sorted(self.schedulers)[which % len(self.schedulers)]}-client"
        seen = self.secrets.kept[name]
        at_once(self.secrets.replace(seen, {**seen.data, "ca.crt": b"nonsense"}))
        at_once(self.certificates.step(dict.fromkeys(self.schedulers, ""), {}))

    def settle(self) -> None:
        """Everybody does what he has to do."""
        self.silent.clear()
        for number in range(200):
            for name in self.replicas:
                self.replicas[name].put(self.secret)
            for which in range(4 * len(self.schedulers)):
                self.pod_rolls(which)
                self.check()
            self.gather(0)
            self.leader_passes(number)
            self.check()
            if self.phase is Phase.STABLE and ROTATE not in self.secret.metadata.annotations:
                return
        raise AssertionError("it never ends")

    def check(self) -> None:
        for name, replica in self.replicas.items():
            assert replica.authority is not None
            assert replica.server is not None
            for scheduler, one in self.schedulers.items():
                for pod in one.pods:
                    for bundle, shown in (
                        (pod.known, replica.server.certificate),
                        (replica.authority.client_ca_bundle, pod.mounted["tls.crt"]),
                    ):
                        assert believes(bundle, shown), f"{scheduler} and {name}: {self.phase}"


HAPPENINGS: list[Callable[[World, int], None]] = [
    *[World.replica_loads, World.pod_rolls, World.pod_reads, World.gather, World.leader_passes] * 4,
    *[World.a_write_is_refused] * 3,
    World.replica_comes,
    World.replica_goes,
    World.replica_is_silent,
    World.scheduler_comes,
    World.scheduler_goes,
    World.somebody_asks,
    World.a_secret_is_spoilt,
]


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 250))
def test_nobody_is_shown_what_he_does_not_trust(seed: int, count: int) -> None:
    world, dice = World(), random.Random(seed)  # noqa: S311  a simulation
    for _ in range(count):
        dice.choice(HAPPENINGS)(world, dice.randrange(1000))
        world.check()
    before = world.secret.data["tls.crt"]
    world.settle()
    world.somebody_asks(0)
    world.settle()
    assert world.secret.data["tls.crt"] != before
    assert set(world.secret.data) == {"tls.crt", "tls.key"}
    for name in world.schedulers:
        data = world.secrets.kept[f"{name}-client"].data
        assert believes(world.secret.data["tls.crt"], data["tls.crt"])
        assert data["ca.crt"].strip() == world.secret.data["tls.crt"].strip()


def test_what_the_simulation_believes_is_what_openssl_believes() -> None:
    """Each step with real handshakes; and what is left out at the end is refused."""
    world = World()
    world.replica_comes(0)
    phases = []
    first = next(iter(world.schedulers.values())).pods[0].mounted
    world.somebody_asks(0)
    for _ in range(4):
        world.gather(0)
        world.leader_passes(0)
        for which in range(2):
            _shake_all(world)
            world.replica_loads(which)
        for which in range(4):
            _shake_all(world)
            world.pod_rolls(which)
        phases.append(world.phase)
    assert phases == [Phase.INTRODUCED, Phase.SWITCHED, Phase.NARROWED, Phase.STABLE]
    replica = next(iter(world.replicas.values()))
    assert replica.server is not None
    assert replica.authority is not None
    old = Pair(first["tls.crt"], first["tls.key"])
    with pytest.raises(ssl.SSLError, match=r"unable to get local issuer|unknown ca"):
        handshake(replica.server, replica.authority.client_ca_bundle, old, replica.authority.server_ca_bundle, HOST)


def _shake_all(world: World) -> None:
    for replica in world.replicas.values():
        assert replica.server is not None
        assert replica.authority is not None
        for one in world.schedulers.values():
            for pod in one.pods:
                client = Pair(pod.mounted["tls.crt"], pod.mounted["tls.key"])
                handshake(replica.server, replica.authority.client_ca_bundle, client, pod.known, HOST)


def test_without_anybody_asking_it_begins_in_time_and_leaves_never_expire() -> None:
    world = World()
    world.replica_comes(0)
    first, issued, phases = world.secret.data["tls.crt"], set(), set()
    step = timedelta(days=8)
    while world.now < NOW + 3000 * DAY:
        world.now += step
        for replica in world.replicas.values():
            replica.renew()
            replica.put(world.secret)
            assert replica.server is not None
            assert parsing.read_certificate(replica.server.certificate).ends > world.now + 5 * DAY
        for which in range(2):
            world.pod_rolls(which)
        world.gather(0)
        world.leader_passes(0)
        phases.add(world.phase)
        for name in world.schedulers:
            leaf = world.secrets.kept[f"{name}-client"].data["tls.crt"]
            issued.add(leaf)
            assert parsing.read_certificate(leaf).ends > world.now + 5 * DAY
        if world.secret.data["tls.crt"] == first:
            assert world.now < NOW + 2935 * DAY
        world.check()
    assert phases == {*Phase}
    assert len(issued) > 50
    assert authority().phase is Phase.STABLE
