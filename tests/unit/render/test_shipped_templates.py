import zipfile
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

from fairlead.render.shipped_templates import templates

_ROOT = Path(__file__).parents[3]


def test_the_wheel_has_the_templates(tmp_path: Path) -> None:
    (wheel,) = WheelBuilder(str(_ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as files:
        shipped = {
            name.removeprefix("fairlead/_templates/"): files.read(name).decode()
            for name in files.namelist()
            if name.startswith("fairlead/_templates/")
        }
    assert shipped == templates()


def test_each_template_is_there() -> None:
    names = ("access", "config", "config_only", "pod", "workload")
    assert [*templates()] == [f"scheduler/{name}.yaml" for name in names]
