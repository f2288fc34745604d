"""The oracle of the fault tests detects lost, repeated and wrong output."""

import pytest

from millstream_chaos.outputs.compare import find_differences, hash_lines

RIGHT = {"a": ["S k1 1 x", "S k1 2 y", "S k2 1 z"], "b": ["S k1 3 w"]}


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ({"a": RIGHT["a"]}, "1 lines are missing, such as 'S k1 3 w'"),
        ({**RIGHT, "c": ["S k2 1 z"]}, "1 lines are duplicated, such as 'S k2 1 z'"),
        ({**RIGHT, "c": ["S k2 2 z"]}, "1 lines are unexpected, such as 'S k2 2 z'"),
        ({"a": ["S k1 2 y", "S k1 1 x", "S k2 1 z"], "b": ["S k1 3 w"]}, "'S k1' has 1 after 2"),
        ({"a": ["S k1 1 x", "S k1 3 w", "S k2 1 z"], "b": ["S k1 2 y"]}, "'S k1' is interleaved in a and b"),
    ],
)
def test_a_fault_in_the_output_is_named(found: dict[str, list[str]], problem: str) -> None:
    assert any(problem in each for each in find_differences(found, RIGHT))


def test_equal_lines_in_different_files_are_equal() -> None:
    other = {"x": ["S k2 1 z", "S k1 1 x"], "y": ["S k1 2 y", "S k1 3 w"]}
    assert not list(find_differences(other, RIGHT))
    assert hash_lines(line for lines in other.values() for line in lines) == hash_lines(
        line for lines in RIGHT.values() for line in lines
    )


def test_missing_output_is_a_difference() -> None:
    assert list(find_differences({}, {})) == ["the run without faults has no output"]
