"""What is to be done about certificates, case by case. That nobody is cut off on the way is in test_rotation."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fairlead.pki import parsing
from fairlead.pki.authority import LEAF_LIFE, LIFE, Authority, Phase, read, renewal_time, scheduler_data
from fairlead.pki.issuing import create_authority, issue_leaf
from fairlead.pki.rotation import Action, Advance, Issue, ReplicaTrust, SchedulerTrust, WaitFor, plan
from support.pki.authorities import DAY, NOW, authority

OF = {phase: authority(phase) for phase in Phase}
STRANGE = authority()


def scheduler(one: Authority, *, when: datetime = NOW, rolled: bool = True) -> SchedulerTrust:
    """One that has all that this authority gives."""
    return SchedulerTrust.read(
        scheduler_data(one, "gpu", when), one, parsing.digest(one.server_ca_bundle) if rolled else ""
    )


def replica(one: Authority) -> ReplicaTrust:
    return ReplicaTrust(parsing.digest(one.client_ca_bundle), parsing.read_certificate(one.signing.certificate).key)


def behind(one: Authority) -> ReplicaTrust:
    return replace(replica(one), trusts="other")


def planned(
    one: Authority,
    given: SchedulerTrust | None = None,
    asked: ReplicaTrust | None = None,
    now: datetime = NOW,
    *,
    requested: bool = False,
) -> tuple[Action, ...]:
    return plan(one, {"gpu": given or scheduler(one)}, {"r": asked or replica(one)}, now, requested=requested)


@pytest.mark.parametrize(
    ("phase", "after"),
    [
        (Phase.INTRODUCED, Phase.SWITCHED),
        (Phase.SWITCHED, Phase.NARROWED),
        (Phase.NARROWED, Phase.STABLE),
    ],
)
def test_a_step_is_followed_by_the_next_when_all_have_taken_it(phase: Phase, after: Phase) -> None:
    one = OF[phase]
    assert planned(one) == (Advance(after, f"all have completed the step {phase}"),)
    assert planned(one, asked=behind(one)) == (WaitFor(phase, ("r",), ()),)
    assert plan(one, {"gpu": scheduler(one)}, {"r": None}, NOW) == (WaitFor(phase, ("r",), ()),)
    assert plan(one, {"gpu": scheduler(one)}, {}, NOW) == (WaitFor(phase, (), ()),)
    assert plan(one, {}, {"r": replica(one)}, NOW) == (Advance(after, f"all have completed the step {phase}"),)


@pytest.mark.parametrize(
    ("phase", "waits"), [(Phase.INTRODUCED, True), (Phase.SWITCHED, False), (Phase.NARROWED, True)]
)
def test_which_steps_wait_for_schedulers_to_roll(phase: Phase, waits: bool) -> None:
    actions = planned(OF[phase], scheduler(OF[phase], rolled=False))
    assert (WaitFor(phase, (), ("gpu",)) in actions) == waits


def test_before_it_is_narrowed_all_show_what_the_new_one_has_signed() -> None:
    before, one = OF[Phase.INTRODUCED], OF[Phase.INTRODUCED].becomes(Phase.SWITCHED, lambda: STRANGE.signing)
    old = SchedulerTrust.read(scheduler_data(before, "gpu", NOW), one, parsing.digest(one.server_ca_bundle))
    assert planned(one, old) == (Issue("gpu", "another authority signs now"), WaitFor(Phase.SWITCHED, (), ("gpu",)))
    asked = replace(replica(one), issuer=replica(before).issuer)
    assert planned(one, asked=asked) == (WaitFor(Phase.SWITCHED, ("r",), ()),)


@pytest.mark.parametrize(
    ("case", "given", "now", "why"),
    [
        ("all is well", scheduler(OF[Phase.STABLE]), NOW, ""),
        ("it is new", SchedulerTrust(), NOW, "there is no certificate"),
        ("half of its life is over", scheduler(OF[Phase.STABLE]), NOW + 15 * DAY, ""),
        ("two thirds are", scheduler(OF[Phase.STABLE]), NOW + 20 * DAY, "two thirds of its lifetime are over"),
        ("it was issued within the usual skew", scheduler(OF[Phase.STABLE], when=NOW + timedelta(minutes=4)), NOW, ""),
        (
            "it was issued by a clock that was ahead",
            scheduler(OF[Phase.STABLE], when=NOW + 400 * DAY),
            NOW,
            "it is not valid yet: the clock was ahead when it was issued",
        ),
        (
            "somebody else signed it",
            SchedulerTrust.read(scheduler_data(STRANGE, "gpu", NOW), OF[Phase.STABLE], ""),
            NOW,
            "our authority has not signed it",
        ),
        (
            "it is another's",
            SchedulerTrust.read(scheduler_data(OF[Phase.STABLE], "web", NOW), OF[Phase.STABLE], ""),
            NOW,
            "it is for fairlead:scheduler:web",
        ),
        (
            "it knows others",
            replace(scheduler(OF[Phase.STABLE]), bundle="other"),
            NOW,
            "the trusted authorities changed",
        ),
    ],
)
def test_when_a_certificate_is_issued(case: str, given: SchedulerTrust, now: datetime, why: str) -> None:
    assert planned(OF[Phase.STABLE], given, now=now) == ((Issue("gpu", why),) if why else ()), case


@pytest.mark.parametrize("key", ["tls.crt", "tls.key", "ca.crt"])
@pytest.mark.parametrize("content", [None, b"", b"nonsense"])
def test_a_secret_that_was_spoilt_is_written_anew(key: str, content: bytes | None) -> None:
    one = OF[Phase.STABLE]
    data = scheduler_data(one, "gpu", NOW)
    spoilt = {name: held for name, held in data.items() if name != key} | ({} if content is None else {key: content})
    assert planned(one, SchedulerTrust.read(spoilt, one, "x")) == (Issue("gpu", "there is no certificate"),)
    assert planned(one, SchedulerTrust.read(None, one, "x")) == (Issue("gpu", "there is no certificate"),)


@pytest.mark.parametrize(
    ("now", "requested", "why"),
    [
        (NOW, False, ""),
        (NOW, True, "the annotation fairlead.dev/rotate requests it"),
        (NOW + 0.79 * LIFE, False, ""),
        (NOW + 0.81 * LIFE, False, "the authority expires on 2036-11-18"),
        (NOW + 1.5 * LIFE, False, "the authority expires on 2036-11-18"),
    ],
)
def test_when_the_authority_is_replaced(now: datetime, requested: bool, why: str) -> None:
    one = OF[Phase.STABLE]
    given = scheduler(one, when=min(now, NOW + 0.9 * LIFE))
    actions = plan(one, {"gpu": given}, {"r": replica(one)}, now, requested=requested)
    assert actions == ((Advance(Phase.INTRODUCED, why),) if why else ())


def test_one_at_a_time() -> None:
    one = OF[Phase.INTRODUCED]
    assert planned(one, asked=behind(one), requested=True) == (WaitFor(Phase.INTRODUCED, ("r",), ()),)


@pytest.mark.parametrize("phase", [Phase.INTRODUCED, Phase.SWITCHED, Phase.NARROWED])
def test_nobody_is_waited_for_until_the_old_one_has_expired(phase: Phase) -> None:
    one, soon = OF[phase], NOW + LIFE - LEAF_LIFE
    early = planned(one, asked=behind(one), now=soon - timedelta(hours=1))
    assert WaitFor(phase, ("r",), ()) in early
    [late] = planned(one, asked=behind(one), now=soon)
    assert isinstance(late, Advance)
    assert late.why == f"the old authority expires; {WaitFor(phase, ('r',), ())}"


def test_a_next_authority_of_a_clock_that_was_ahead_is_replaced_before_it_signs() -> None:
    ahead = replace(OF[Phase.STABLE], next=create_authority("ahead", NOW + 0.9 * LIFE, LIFE))
    why = "the next authority is not valid yet: the clock was ahead"
    assert planned(ahead) == (Advance(Phase.INTRODUCED, why),)
    mended = ahead.becomes(Phase.INTRODUCED, lambda: STRANGE.signing)
    assert (mended.phase, mended.signing, mended.next) == (Phase.INTRODUCED, ahead.signing, STRANGE.signing)


@pytest.mark.parametrize("phase", Phase)
def test_an_authority_of_a_clock_that_was_years_ahead_is_replaced_at_once(phase: Phase) -> None:
    one = authority(phase, NOW + 0.5 * LIFE)
    steps = list[Phase]()
    # as the issuer does; no replica can be asked, because nothing trusts its certificate
    while isinstance(action := plan(one, {"gpu": scheduler(one)}, {"r": None}, NOW)[0], Advance):
        one = one.becomes(action.phase, lambda: create_authority("now", NOW, LIFE))
        assert read(one.data()) == one
        steps.append(one.phase)
        assert "is not valid yet: the clock was ahead" in action.why
    assert steps == [Phase.INTRODUCED, Phase.SWITCHED]
    assert parsing.read_certificate(one.signing.certificate).begins < NOW
    assert plan(one, {"gpu": SchedulerTrust()}, {"r": None}, NOW) == (
        Issue("gpu", "there is no certificate"),
        WaitFor(Phase.SWITCHED, ("r",), ("gpu",)),
    )


def test_who_is_waited_for_is_said() -> None:
    assert str(WaitFor(Phase.INTRODUCED, ("r1",), ("a", "b"))) == (
        "the rotation of the authority (Introduced) waits for replicas r1 and schedulers a, b"
    )
    assert str(WaitFor(Phase.SWITCHED)).endswith("waits for any replica to answer")


def test_certificates_do_not_all_fall_due_at_once() -> None:
    one = OF[Phase.STABLE].signing
    leaves = [parsing.read_certificate(issue_leaf(one, "x", "client", NOW, LEAF_LIFE).certificate) for _ in range(50)]
    due = [renewal_time(leaf.begins, leaf.ends, leaf.serial) - NOW for leaf in leaves]
    assert min(due) >= 0.56 * LEAF_LIFE
    assert max(due) <= 2 / 3 * LEAF_LIFE
    assert max(due) - min(due) > DAY
