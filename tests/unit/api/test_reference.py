"""The reference page of the resource is made from the CRD."""

import write_reference


def test_the_reference_page_is_current() -> None:
    assert write_reference.page() == write_reference.PAGE.read_text(), "run make crds"
