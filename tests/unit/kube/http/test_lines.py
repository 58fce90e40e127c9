"""Lines come out as they went in, wherever the chunks were cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.kube.http.client import Lines, LongLineError


@given(st.lists(st.binary(min_size=1).map(lambda line: line.replace(b"\n", b"x"))), st.lists(st.integers(1, 9)))
def test_lines_are_the_same_wherever_they_are_cut(lines: list[bytes], cuts: list[int]) -> None:
    stream, got, reader = b"".join(line + b"\n" for line in lines) + b"half", [], Lines()
    for cut in cuts:
        got += reader.feed(stream[:cut])
        stream = stream[cut:]
    got += reader.feed(stream)
    assert got == lines, "and half a line is none"


def test_empty_lines_are_none() -> None:
    assert Lines().feed(b"\n\na\n\n") == [b"a"]


@pytest.mark.parametrize("chunks", [[b"123456"], [b"123", b"456"], [b"123", b"456\n"], [b"123456\n1\n"]])
def test_a_line_that_is_too_long_is_refused(chunks: list[bytes]) -> None:
    lines = Lines(5)
    *before, last = chunks
    for chunk in before:
        lines.feed(chunk)
    with pytest.raises(LongLineError, match="longer than 5 bytes"):
        lines.feed(last)


def test_a_line_may_be_as_long_as_is_allowed() -> None:
    assert Lines(5).feed(b"12345\n12345\n") == [b"12345", b"12345"]


def test_many_lines_together_may_be_longer() -> None:
    lines = Lines(5)
    assert [lines.feed(chunk) for chunk in (b"123", b"4\n12", b"345\n12", b"\n")] == [
        [],
        [b"1234"],
        [b"12345"],
        [b"12"],
    ]
