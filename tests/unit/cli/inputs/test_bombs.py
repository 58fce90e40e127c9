"""Short files of strangers that stand for more values than any machine can hold, in every option that takes a file."""

from pathlib import Path
from typing import Final

import pytest

from fairlead.cli.main import main
from fairlead.webhook.serving.policy_files import PolicyFiles
from support.bombs import merging_maps

EXAMPLE: Final = str(Path(__file__).parents[4] / "examples" / "gpu-class.yaml")
CLUSTER: Final = str(Path(__file__).parents[4] / "examples" / "clusters" / "gpus.yaml")
MERGED: Final = "<< copies more than 100,000 keys in this file: write them out"
COMMANDS: Final = {
    "data": (
        ["explain", "train", "--snapshot", CLUSTER, "--policies", EXAMPLE, "--data"],
        f"this is neither JSON nor YAML: line 17: {MERGED}",
    ),
    "snapshot": (["explain", "train", "--policies", EXAMPLE, "--snapshot"], f"from line 17 on: {MERGED}"),
    "settings of lint": (["lint", EXAMPLE, "--settings"], f"line 17: {MERGED}"),
    "settings of render": (["render", EXAMPLE, "--settings"], f"line 17: {MERGED}"),
    "lint": (["lint"], "with aliases expanded this is"),
    "test": (["test"], "with aliases expanded this is"),
    "import": (["import"], "with aliases expanded this is"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_maps_that_merge_each_other_are_refused(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file := tmp_path / "bomb.test.yaml").write_text(merging_maps(60))
    arguments, want = COMMANDS[case]
    assert main([*arguments, str(file)]) in (1, 2)
    out, err = capsys.readouterr()
    assert want in out + err
    assert str(file) in out + err


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (merging_maps(60), f"is not YAML: line 17: {MERGED}"),
        (
            "a0: &a0 {kind: List, items: [1]}\n"
            + "\n".join(f"a{at}: &a{at} {{kind: List, items: [*a{at - 1}, *a{at - 1}]}}" for at in range(1, 60))
            + "\nkind: List\nitems: [*a59]",
            "is not YAML: a list has more than 8,388,608 values with aliases expanded",
        ),
    ],
)
def test_the_folder_of_serve_refuses_them(text: str, want: str, tmp_path: Path) -> None:
    (tmp_path / "bomb.yaml").write_text(text)
    assert PolicyFiles(tmp_path).scan().faults == {str(tmp_path / "bomb.yaml"): want}
