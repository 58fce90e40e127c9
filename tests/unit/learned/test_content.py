"""Text of learned state: read as it was written, bounded, and refused where it cannot be what this version wrote."""

import json

import pytest

from fairlead.learned.content import BYTES_MAX, PAIRS, PODS, encode_demands, encode_pairs, read
from fairlead.learned.demands import AMOUNT_MAX
from fairlead.learned.pair import OutcomeSums, key_of, text_of
from fairlead.learned.pairs import Meaning

NOW = 1_764_000_000
MEANING = Meaning(3600)
PAIR = OutcomeSums(1.97153, 4.72331, NOW, "ml", (NOW - 1600, "c2Vjb25kIQ0"), text_of([(NOW, "Zmlyc3QhIQ1")]))


def test_pairs_are_read_as_they_were_written() -> None:
    pairs = {("ml/trainer", key_of("uid")): PAIR, ("web", "x"): OutcomeSums(1 / 3, 2 / 3, NOW, "a"), ("web", "y"): PAIR}
    written = encode_pairs(pairs, MEANING, NOW)
    assert read("", written.data, "1").value == written.pairs == pairs


def test_pods_are_read_as_they_were_written() -> None:
    pods = {(NOW, "a"): (0.1, AMOUNT_MAX), (NOW - 1, "b"): (0.0, 3.0)}
    written = encode_demands(pods, 5)
    assert read("", written.data, "1").value == written.demands == pods


def test_the_form_that_is_documented() -> None:
    text = encode_pairs({("ml/trainer", "k3Jd8sLq0aE"): PAIR}, MEANING, NOW).data[PAIRS]
    row = ["k3Jd8sLq0aE", 0, 1.97153, 4.72331, NOW, [NOW - 1600, "c2Vjb25kIQ0"], [[NOW, "Zmlyc3QhIQ1"]]]
    assert json.loads(text) == {"v": 1, "types": [["ml/trainer", "ml"]], "pairs": [row]}


def test_twenty_thousand_pairs_fit_their_shards() -> None:
    pairs = {("ml/trainer", key_of(at)): PAIR for at in range(20_000 // 16)}
    written = encode_pairs(pairs, MEANING, NOW)
    assert written.pairs == pairs
    assert len(written.data[PAIRS]) < 160 << 10


def test_the_oldest_ids_of_all_pairs_go_first_and_are_remembered() -> None:
    busy = tuple((NOW - 60, key_of(at)) for at in range(256))
    quiet = tuple((NOW - 600 - at, key_of(at)) for at in range(3, 0, -1))
    pairs = {
        ("web", key_of("node", at)): OutcomeSums(
            1.0, 2.0, NOW, "a", (0, ""), text_of(sorted(busy if at % 2 else quiet))
        )
        for at in range(200)
    }
    written = encode_pairs(pairs, MEANING, NOW)
    assert len(written.data[PAIRS]) <= BYTES_MAX
    assert written.pairs.keys() == pairs.keys()
    for key, pair in written.pairs.items():
        before = pairs[key].marks
        kept = len(pair.marks)
        assert kept == 0 if before[-1] in quiet else kept in range(100, 256)
        assert pair.left_out == before[len(before) - kept - 1]
    assert read("", written.data, "1").value == written.pairs


def test_then_pairs_next_to_the_prior() -> None:
    far, near = OutcomeSums(0.0, 3.0, NOW, "a"), OutcomeSums(3.0, 3.0, NOW, "a")
    pairs = {("\N{SNOWMAN}" * 128 + str(at), key_of(at)): far if at % 2 else near for at in range(1200)}
    written = encode_pairs(pairs, MEANING, NOW)
    assert BYTES_MAX - 1000 < len(written.data[PAIRS].encode()) <= BYTES_MAX
    assert {key for key, pair in pairs.items() if pair is far} <= written.pairs.keys()
    assert 600 < len(written.pairs) < 1200
    assert read("", written.data, "1").value == written.pairs


def test_pods_that_are_too_large_lose_the_oldest() -> None:
    pods = {(NOW + at, f"{at:036}"): (1 / 3,) * 5 for at in range(4000)}
    written = encode_demands(pods, 4000)
    assert len(written.data[PODS]) <= BYTES_MAX
    assert [*written.demands] == [*reversed(pods)][: len(written.demands)]
    assert len(written.demands) > 2000


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({}, "truncated"),
        ({PAIRS: ""}, "truncated"),
        ({PAIRS: "{}"}, "missing required field `v`"),
        ({PAIRS: '{"v":1}'}, "missing required field `types`"),
        ({PAIRS: '{"v":1,"types":[],"pairs":[["n",0,0,1,1,[0,""],[]]]}'}, "of type 0, of 0 types"),
        (
            {PAIRS: '{"v":1,"types":[["a","b"]],"pairs":[["n",0,2,1,1,[0,""],[]]]}'},
            "rewards of a pair are more than its weight",
        ),
        ({PAIRS: '{"v":1,"types":[["a","b"]],"pairs":[["n",0,-1,1,1,[0,""],[]]]}'}, ">= 0"),
        ({PAIRS: '{"v":1,"types":[["a","b"]],"pairs":[["n",0,0,1e999,1,[0,""],[]]]}'}, "out of range"),
        (
            {PAIRS: '{"v":1,"types":[["a","b"],["a","b"]],"pairs":[["n",0,0,1,1,[0,""],[]],["n",1,0,1,1,[0,""],[]]]}'},
            "twice",
        ),
        ({PAIRS: '{"v":1,"types":[["a","b"]],"pairs":[["n",0,0,1,1,[0,""],[1]]]}'}, "Expected `array`, got `int`"),
        ({PAIRS: '{"v":1,"types":[["a","b"]],"pairs":[["n",0,0,1,1,[0,""],[[1]]]]}'}, "of at least length 2"),
        ({PAIRS: '{"v":1,"types":[["a","b"]],"pairs":[["n",0,0,1,1,[0,""],[[-1,"a"]]]]}'}, ">= 0"),
        ({PAIRS: '{"v":1,"types":[["a","b"]],"pairs":[["n",0,0,1,1,[0,""],[[1,"a",2]]]]}'}, "of at most length 2"),
        ({PAIRS: '{"v":1,"types":[["a","b"]],"pairs":[["n",0,0,1,1,[0,"",0],[]]]}'}, "of at most length 2"),
        ({PAIRS: '{"v":1,"types":[["a","b"]],"pairs":[["n",0,0,1,1,null,[]]]}'}, "Expected `array`, got `null`"),
        ({PAIRS: '{"v":1,"types":[["a","b"]],"pairs":[["n",0,0,1,1,[0,""],[],0]]}'}, "of at most length 7"),
        ({PAIRS: '{"v":1,"types":[["a","b"]],"pairs":[["n",0,0,1,1,[0,""]]]}'}, "of at least length 7"),
        ({PAIRS: '{"v":1,"types":[["a","b"]],"pairs":[["n",0,0,1,1,[0,""],{}]]}'}, "Expected `array`, got `object`"),
        ({PODS: '{"v":1,"pods":[[1,"a",[1],2]]}'}, "of at most length 3"),
        ({PODS: '{"v":1,"pods":[[1,"a",[1]],[2,"b",[1,2]]]}'}, "different numbers of resources"),
        ({PODS: '{"v":1,"more":' + "[" * 100_000}, "maximum recursion depth"),
    ],
)
def test_what_cannot_be_read(data: dict[str, str], why: str) -> None:
    found = read("ConfigMap a", data, "1")
    assert found.value is None
    assert found.fault.startswith("ConfigMap a, what a rule has learned, cannot be read: ")
    assert why in found.fault
    assert found.fault.endswith("it is left alone: restore it, or delete it, and its rule learns from the beginning")


def test_what_a_newer_version_wrote() -> None:
    found = read("ConfigMap a", {PAIRS: '{"v":2,"what":"ever"}'}, "1")
    assert "has format '2', and this version of Fairlead reads 1 at most" in found.fault
    assert "upgrade Fairlead" in found.fault
