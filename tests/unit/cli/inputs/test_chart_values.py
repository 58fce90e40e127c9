"""Values of the chart from the file of an option."""

from pathlib import Path

import pytest

from fairlead.cli.inputs.chart_values import UnusableFileError, read_values
from fairlead.render.operator_settings import OperatorSettings


@pytest.mark.parametrize("title", ["USER-SUPPLIED VALUES:", "COMPUTED VALUES:"])
def test_values_as_helm_prints_them(title: str, tmp_path: Path) -> None:
    """`helm get values` writes a title above them unless it is told the format, and `null` if there are none."""
    (file := tmp_path / "values.yaml").write_text(f"{title}\nunlistedSchedulers: Deny\n")
    assert read_values(file).settings.unlisted_schedulers == "Deny"
    file.write_text(f"{title}\nnull\n")
    assert read_values(file).settings == OperatorSettings()
    file.write_text(f"{title}\ntls: {{}}\ntls: {{}}\n")
    with pytest.raises(UnusableFileError, match="line 3: 'tls' is already set in line 2"):
        read_values(file)
