"""What the Secret of the authority holds in each phase, who is trusted then, and what is wrong with one."""

import pytest

from fairlead.pki import authority as authorities
from fairlead.pki.authority import LEAF_LIFE, AuthorityError, Phase, read
from fairlead.pki.issuing import issue_leaf
from support.pki.authorities import NOW, authority

HELD = authority()
OTHER = authority()
GOOD = HELD.data()
LEAF = issue_leaf(HELD.signing, "x", "client", NOW, LEAF_LIFE)


@pytest.mark.parametrize("phase", Phase)
def test_a_phase_is_what_the_secret_holds(phase: Phase) -> None:
    found = authority(phase)
    assert read(found.data()) == found
    keys = {
        Phase.STABLE: set(),
        Phase.INTRODUCED: {"next.crt", "next.key"},
        Phase.SWITCHED: {"previous.crt"},
        Phase.NARROWED: {"retired.crt"},
    }
    assert set(found.data()) == {"tls.crt", "tls.key"} | keys[phase]


def test_who_is_trusted_from_beginning_to_end() -> None:
    old, new = HELD.signing, authorities.new(NOW)
    seen = []
    one = HELD
    for phase in (Phase.INTRODUCED, Phase.SWITCHED, Phase.NARROWED, Phase.STABLE):
        one = one.becomes(phase, lambda: new)
        seen.append(
            (
                phase,
                *(name for name, pair in (("old", old), ("new", new)) if pair == one.signing),
                *(
                    "+".join(n for n, p in (("old", old), ("new", new)) if p.certificate in b)
                    for b in (one.client_ca_bundle, one.server_ca_bundle)
                ),
            )
        )
    assert seen == [
        (Phase.INTRODUCED, "old", "old+new", "old+new"),
        (Phase.SWITCHED, "new", "old+new", "old+new"),
        (Phase.NARROWED, "new", "old+new", "new"),
        (Phase.STABLE, "new", "new", "new"),
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "tls.crt is missing: restore it, or delete the Secret for a new authority"),
        ({"tls.crt": GOOD["tls.crt"]}, "tls.key is missing"),
        (GOOD | {"tls.key": b""}, "tls.key is missing"),
        (GOOD | {"tls.key": b"nonsense"}, "tls.key is not the key of tls.crt"),
        (GOOD | {"tls.key": OTHER.signing.key}, "tls.key is not the key of tls.crt"),
        (GOOD | {"tls.crt": b"nonsense"}, "tls.crt holds no certificate of an authority in PEM"),
        ({"tls.crt": LEAF.certificate, "tls.key": LEAF.key}, "tls.crt holds no certificate of an authority"),
        (GOOD | {"next.crt": GOOD["tls.crt"]}, "next.key is missing"),
        (GOOD | {"previous.crt": b"nonsense"}, "previous.crt holds no certificate of an authority"),
        (
            GOOD | {"previous.crt": GOOD["tls.crt"], "retired.crt": GOOD["tls.crt"]},
            "previous.crt and retired.crt never occur together: remove all but retired.crt",
        ),
    ],
)
def test_what_is_no_authority(data: dict[str, bytes], message: str) -> None:
    with pytest.raises(AuthorityError, match=f"^{message}"):
        read(data)


def test_keys_are_not_shown() -> None:
    assert b"PRIVATE" not in repr(HELD).encode()
