"""Policies of a folder, whatever happens to its files."""

from itertools import pairwise
from pathlib import Path

import pytest

from fairlead.webhook.serving.policy_files import PolicyFiles

POLICY = """
apiVersion: fairlead.dev/v1alpha1
kind: SchedulerExtenderPolicy
metadata: {name: %s}
spec: {priority: %s}
"""


def seen(files: PolicyFiles) -> tuple[dict[str, object], list[str]]:
    scan = files.scan()
    priorities = {name: obj["spec"]["priority"] for name, obj in scan.policies.items()}
    return priorities, [f"{Path(file).name}: {fault}" for file, fault in scan.faults.items()]


def test_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(POLICY % ("a", 1) + "---\nkind: ConfigMap\n---\n" + POLICY % ("b", 2))
    (tmp_path / "c.JSON").write_text(
        '{"kind": "List", "items": [{"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy",'
        ' "metadata": {"name": "c"}, "spec": {"priority": "2026-11-21"}}]}'
    )
    (tmp_path / "notes.txt").write_text("no")
    (tmp_path / "empty.yml").write_text("")
    (tmp_path / "dates.yaml").write_text(POLICY % ("d", "2026-11-21"))
    assert seen(PolicyFiles(tmp_path)) == ({"a": 1, "b": 2, "c": "2026-11-21", "d": "2026-11-21"}, [])


def test_what_changes(tmp_path: Path) -> None:
    files = PolicyFiles(tmp_path)
    one, two = tmp_path / "1.yaml", tmp_path / "2.yaml"
    one.write_text(POLICY % ("a", 1))
    assert seen(files) == ({"a": 1}, [])
    one.write_text(POLICY % ("a", 2))
    two.write_text(POLICY % ("b", 3))
    assert seen(files) == ({"a": 2, "b": 3}, [])
    two.unlink()
    assert seen(files) == ({"a": 2}, [])


@pytest.mark.parametrize(
    ("content", "fault"),
    {
        "kind: [": "is not YAML: while parsing",
        "[" * 200_000: "is nested more than 1,000 levels deep",
        "- " * 200_000 + "a": "is nested more than 1,000 levels deep",
        POLICY % ("a", ".nan"): "is not YAML: nan is not a JSON number",
        POLICY % ("a", "!!binary aGk="): "is not YAML: line 5: could not determine a constructor for the tag",
        POLICY % ("a", "{~: 2}"): "is not YAML: keys must be strings",
        POLICY % ("a", "!!bool maybe"): "is not YAML: line 5: 'maybe' does not match its tag",
        POLICY % ("a", "!!int ''"): "is not YAML: line 5: '' does not match its tag",
        POLICY % ("a", "{b: 1, b: 2}"): "is not YAML: line 5: 'b' is already set in line",
        POLICY % ("[]", 1): "is not YAML: a SchedulerExtenderPolicy has no metadata.name",
        POLICY
        % ("a", "[" * 500 + "]" * 500): "is not YAML: a SchedulerExtenderPolicy is nested more than 100 levels deep",
        "x" * (9 << 20): "is larger than 8 MiB",
        "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
        + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in pairwise("abcdefgh"))
        + (POLICY % ("a", "*h")).lstrip(): "is not YAML: a SchedulerExtenderPolicy has more than 100000 values",
    }.items(),
    ids=range(13),
)
def test_a_file_that_was_spoilt_keeps_what_it_held(tmp_path: Path, content: str, fault: str) -> None:
    files = PolicyFiles(tmp_path)
    file = tmp_path / "1.yaml"
    file.write_text(POLICY % ("a", 1))
    assert seen(files) == ({"a": 1}, [])
    for _ in range(2):
        file.write_text(content)
        held, faults = seen(files)
        assert (held, len(faults), fault in "".join(faults)) == ({"a": 1}, 1, True)
    file.write_text(POLICY % ("a", 2))
    assert seen(files) == ({"a": 2}, [])


def test_a_file_that_is_just_being_written_keeps_what_it_held(tmp_path: Path) -> None:
    files = PolicyFiles(tmp_path)
    file = tmp_path / "1.yaml"
    file.write_text(POLICY % ("a", 1))
    assert seen(files) == ({"a": 1}, [])
    assert seen(files) == ({"a": 1}, [])
    file.write_text("")
    assert seen(files) == (
        {"a": 1},
        ["1.yaml: is empty; if it is still empty at the next scan, its policies are removed"],
    )
    file.write_text(POLICY % ("a", 2))
    assert seen(files) == ({"a": 2}, [])
    file.write_text("")
    assert [seen(files)[0] for _ in range(3)] == [{"a": 2}, {}, {}]


def test_one_name_in_two_files(tmp_path: Path) -> None:
    (tmp_path / "1.yaml").write_text(POLICY % ("a", 1))
    (tmp_path / "2.yaml").write_text(POLICY % ("a", 2))
    fault = "2.yaml: the policy a is already in 1.yaml, which is used"
    assert seen(PolicyFiles(tmp_path)) == ({"a": 1}, [fault])


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        PolicyFiles(tmp_path / "none").scan()
