"""Laws of lines in byte ranges: each line is read completely, from exactly one range."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.connectors.files.lines import blocks

TRICKY = [
    b"",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\r",
    b"a",
    b"a\n",
    b"a\r\nb",
    b"a\rb\nc\r\nd\r",
    b"\n\n\na\n\n",
    b"\r\r\n\r\n\n",
    "häuser\r\n東京\n🙂\r\n\u2028x\x0b\x85y\n".encode(),
    b"x" * 40 + b"\n" + b"y" * 40,
]


def lines(data, start, end, chunk=1 << 20):
    return [line for block in blocks(io.BytesIO(data), start, end, len(data), chunk) for line in block.lines()]


@pytest.mark.parametrize("data", TRICKY)
@pytest.mark.parametrize("chunk", [1, 2, 3, 1000])
def test_every_division_into_two_ranges_gives_the_same_lines(data, chunk):
    for cut in range(len(data) + 1):
        assert lines(data, 0, cut, chunk) + lines(data, cut, len(data), chunk) == data.splitlines()


@given(
    st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\r\n", "é".encode()]), max_size=30).map(b"".join),
    st.integers(1, 7),
    st.integers(1, 9),
)
def test_any_number_of_ranges_gives_the_same_lines(data, width, chunk):
    found = [
        line
        for start in range(0, len(data), width)
        for line in lines(data, start, min(start + width, len(data)), chunk)
    ]
    assert found == data.splitlines()


@pytest.mark.parametrize("data", TRICKY)
@pytest.mark.parametrize("chunk", [1, 2, 1000])
def test_a_file_of_unknown_size_is_read_to_its_end(data, chunk):
    found = [line for block in blocks(io.BytesIO(data), 0, None, None, chunk) for line in block.lines()]
    assert found == data.splitlines()


@pytest.mark.parametrize("data", TRICKY)
def test_blocks_know_where_their_lines_begin(data):
    for block in blocks(io.BytesIO(data), 0, len(data), len(data), 4):
        for index, line in enumerate(block.lines()):
            assert data[block.offset_of(index) :].startswith(line)


def test_data_appended_after_planning_is_not_read():
    assert [b.data for b in blocks(io.BytesIO(b"a\nb\nc\n"), 0, 3, 3)] == [b"a\nb"]


def test_a_long_line_is_not_read_again_for_every_chunk():
    class Counting(io.BytesIO):
        reads = 0

        def read(self, size=-1):
            Counting.reads += 1
            return super().read(size)

    data = b"x" * 10_000 + b"\n"
    assert [len(b.data) for b in blocks(Counting(data), 0, len(data), len(data), 10)] == [len(data)]
    assert Counting.reads < 20
