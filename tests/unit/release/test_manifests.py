"""The manifests for an install without Helm: what is said of the image that they name."""

from pathlib import Path

import pytest
from release.project import IMAGE

from release import manifests


@pytest.mark.parametrize(("image", "warned"), [(IMAGE, True), ("registry.example.com/platform/fairlead", False)])
def test_an_image_that_is_not_published_is_warned_of(
    image: str, warned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host, _, repository = image.partition("/")
    monkeypatch.setattr(manifests, "ROOT", tmp_path)
    manifests.main([f"--set=image.registry={host}", f"--set=image.repository={repository}"], tmp_path / "dist")
    assert ("warning: no image is published under" in capsys.readouterr().err) is warned
