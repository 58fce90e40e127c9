"""The reference page of the resource is made from the CRD."""

from generate import reference


def test_the_reference_page_is_current() -> None:
    assert reference.page() == reference.PAGE.read_text(), "run make crds"
