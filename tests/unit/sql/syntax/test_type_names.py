"""The grammar of data types."""

import pytest

from millstream.sql.errors import SqlError
from millstream.sql.syntax import parse_type


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("int not null", "INT NOT NULL"),
        ("DEC(5, 2)", "DECIMAL(5, 2)"),
        ("NUMERIC", "DECIMAL(10, 0)"),
        ("DOUBLE PRECISION", "DOUBLE"),
        ("TIME WITHOUT TIME ZONE", "TIME(0)"),
        ("TIMESTAMP(3) WITHOUT TIME ZONE", "TIMESTAMP(3)"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(3)"),
        ("INT ARRAY", "ARRAY<INT>"),
        ("INT NOT NULL MULTISET NOT NULL", "MULTISET<INT NOT NULL> NOT NULL"),
        ("MAP<STRING, ARRAY<INT>>", "MAP<STRING, ARRAY<INT>>"),
        ("ROW(a INT, `b c` STRING)", "ROW<`a` INT, `b c` STRING>"),
        ("ROW<>", "ROW<>"),
        ("STRUCTURED<'a.B', x INT>", "STRUCTURED<'a.B', `x` INT>"),
    ],
)
def test_a_type_is_parsed_by_each_of_its_names(text: str, printed: str) -> None:
    assert str(parse_type(text)) == printed


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("INTT", 0, "unknown type 'INTT'"),
        ("1", 0, "unexpected '1': expected a type"),
        ("CHAR(0)", 5, "0 is out of range: 1 to"),
        ("TIME(10)", 5, "10 is out of range: 0 to 9"),
        ("DECIMAL(39)", 8, r"DECIMAL\(39, 0\) is not a valid type"),
        ("ARRAY INT", 6, "unexpected 'INT': expected '<'"),
        ("MAP<INT>", 7, "unexpected '>': expected ','"),
        ("TIMESTAMP WITH TIME ZONE", 10, "TIMESTAMP WITH TIME ZONE is not supported"),
        ("STRUCTURED<a>", 11, "expected the name of a class in quotes"),
        ("STRUCTURED<'1', a INT>", 11, "'1' is not a valid name of a class"),
        ("STRUCTURED<'c', a INT, a INT>", 11, "two fields of 'c' have the same name"),
        ("RAW('x'", 7, r"expected '\)'"),
    ],
)
def test_a_wrong_type_is_an_error_at_its_offset(text: str, at: int, message: str) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        parse_type(text)
    assert caught.value.at == at
