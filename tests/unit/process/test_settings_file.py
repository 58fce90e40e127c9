from pathlib import Path

import pytest

from fairlead.process.settings_file import SettingsError, load_settings
from fairlead.render.operator_settings import OperatorSettings

TEXT = "prometheus: [{name: default, url: 'http://prometheus:9090'}]"


def test_without_a_file_there_are_the_defaults() -> None:
    file = load_settings(None)
    assert (file.settings, file.reload()) == (OperatorSettings(), False)


def test_servers_of_a_file_are_those_of_its_last_usable_contents(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(TEXT)
    file = load_settings(path)
    assert [one.url for one in file.settings.prometheus] == ["http://prometheus:9090"]
    path.write_text("prometheus: [{name: default}]")
    with pytest.raises(SettingsError, match=r"^prometheus\[0\].url: is missing;"):
        file.reload()
    assert [one.url for one in file.settings.prometheus] == ["http://prometheus:9090"]
    path.write_text(TEXT.replace("9090", "9091"))
    assert file.reload()
    assert [one.url for one in file.settings.prometheus] == ["http://prometheus:9091"]


@pytest.mark.parametrize(
    ("text", "said"), [(None, "cannot be read: No such file or directory"), ("x: 1", "x: there is no such field")]
)
def test_a_file_that_cannot_be_used_is_named(text: str | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingsError) as failed:
        load_settings(path)
    assert str(failed.value).startswith(f"{path}: {said}")
