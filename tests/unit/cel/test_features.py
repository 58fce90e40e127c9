"""The table of features in the reference says how each is evaluated today."""

import write_features


def test_the_reference_tells_what_is_lowered() -> None:
    assert write_features.page() == write_features.PAGE.read_text(), "run make crds"
