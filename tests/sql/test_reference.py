"""The reference page of functions is up to date and complete."""

import re
import runpy
from pathlib import Path

import pytest

from millstream.sql.functions.aggregates import AGGREGATES
from millstream.sql.functions.library import list_built_in_names, list_names
from millstream.sql.functions.over_functions import OVER_FUNCTIONS
from millstream.sql.logical.bind.changelogs import CHANGELOG_FUNCTIONS
from millstream.sql.logical.bind.expressions import _SPECIAL, GROUPINGS, WINDOW_PARTS
from millstream.sql.logical.bind.windows import WINDOW_FUNCTIONS

REFERENCE = Path(__file__).parent.parent.parent / "docs" / "reference"
#: Functions with a separate syntax, and functions that exist only in MATCH_RECOGNIZE.
OWN_SYNTAX = ("CASE", "CAST", "TRY_CAST", "EXISTS", "UNNEST", "FIRST", "LAST", "MATCH_ROWTIME", "MATCH_PROCTIME")
NOT_CALLABLE = {"SINGLE_VALUE", "ITEM", "NEGATE"}  # written as a subquery, as array[index] and as -number
#: The functions of Flink 2.3.0, as its file docs/data/sql_functions.yml lists them; operators are tested above.
FLINK = """
    ABS ACOS ARRAY_AGG ARRAY_APPEND ARRAY_CONCAT ARRAY_CONTAINS ARRAY_DISTINCT ARRAY_EXCEPT ARRAY_INTERSECT ARRAY_JOIN
    ARRAY_MAX ARRAY_MIN ARRAY_POSITION ARRAY_PREPEND ARRAY_REMOVE ARRAY_REVERSE ARRAY_SLICE ARRAY_SORT ARRAY_UNION
    ASCII ASIN ATAN ATAN2 AVG BIN BITMAP_AND BITMAP_ANDNOT BITMAP_AND_AGG BITMAP_AND_CARDINALITY_AGG BITMAP_BUILD
    BITMAP_BUILD_AGG BITMAP_BUILD_CARDINALITY_AGG BITMAP_CARDINALITY BITMAP_FROM_BYTES BITMAP_OR BITMAP_OR_AGG
    BITMAP_OR_CARDINALITY_AGG BITMAP_TO_ARRAY BITMAP_TO_BYTES BITMAP_TO_STRING BITMAP_XOR BITMAP_XOR_AGG
    BITMAP_XOR_CARDINALITY_AGG BTRIM CARDINALITY CAST CEIL CEILING CHARACTER_LENGTH CHAR_LENGTH CHR COALESCE COLLECT
    CONCAT CONCAT_WS CONVERT_TZ COS COSH COT COUNT CUME_DIST CURRENT_DATABASE CURRENT_DATE CURRENT_ROW_TIMESTAMP
    CURRENT_TIME CURRENT_TIMESTAMP CURRENT_WATERMARK DATE_FORMAT DAYOFMONTH DAYOFWEEK DAYOFYEAR DECODE DEGREES
    DENSE_RANK E ELEMENT ELT ENCODE ENDSWITH EXISTS EXP EXTRACT FIRST_VALUE FLOOR FROM_BASE64 FROM_UNIXTIME GREATEST
    GROUPING GROUPING_ID GROUP_ID HEX HOUR IF IFNULL IN INET_ATON INET_NTOA INITCAP INSTR IS_ALPHA IS_DECIMAL IS_DIGIT
    JSON JSON_ARRAY JSON_ARRAYAGG JSON_EXISTS JSON_OBJECT JSON_OBJECTAGG JSON_QUERY JSON_QUOTE JSON_STRING JSON_UNQUOTE
    JSON_VALUE LAG LAST_VALUE LEAD LEAST LEFT LISTAGG LN LOCALTIME LOCALTIMESTAMP LOCATE LOG LOG10 LOG2 LOWER LPAD
    LTRIM MAP_ENTRIES MAP_FROM_ARRAYS MAP_KEYS MAP_UNION MAP_VALUES MAX MD5 MIN MINUTE MONTH NOW NTILE NULLIF OBJECT_OF
    OBJECT_UPDATE OVERLAPS OVERLAY PARSE_JSON PARSE_URL PERCENTILE PERCENT_RANK PI POSITION POWER PRINTF QUARTER
    RADIANS RAND RAND_INTEGER RANK REGEXP REGEXP_COUNT REGEXP_EXTRACT REGEXP_EXTRACT_ALL REGEXP_INSTR REGEXP_REPLACE
    REGEXP_SUBSTR REPEAT REPLACE REVERSE RIGHT ROUND ROW ROW_NUMBER RPAD RTRIM SECOND SHA1 SHA2 SHA224 SHA256 SHA384
    SHA512 SIGN SIN SINH SPLIT SPLIT_INDEX SQRT STARTSWITH STDDEV_POP STDDEV_SAMP STR_TO_MAP SUBSTR SUBSTRING SUM TAN
    TANH TIMESTAMPADD TIMESTAMPDIFF TO_BASE64 TO_DATE TO_TIMESTAMP TO_TIMESTAMP_LTZ TRANSLATE TRIM TRUNCATE TRY_CAST
    TRY_PARSE_JSON TYPEOF UNHEX UNIX_TIMESTAMP UPPER URL_DECODE URL_ENCODE UUID VARIANCE VAR_POP VAR_SAMP WEEK YEAR
"""


def documented_names() -> set[str]:
    """Return the words in upper case of the first column."""
    page = (REFERENCE / "functions.md").read_text(encoding="utf-8")
    cells = [line.replace("\\|", "").split("|")[1] for line in page.splitlines() if line.startswith("|")]
    return {word for cell in cells for word in re.findall(r"[A-Z_][A-Z_0-9]*", cell)}


def test_the_page_of_functions_is_up_to_date() -> None:
    page = runpy.run_path(str(REFERENCE / "generate_functions.py"))["page"]()
    assert (REFERENCE / "functions.md").read_text(encoding="utf-8") == page, "run docs/reference/generate_functions.py"


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([*list_names(), *AGGREGATES, *OVER_FUNCTIONS], id="registries"),
        pytest.param([*_SPECIAL, *GROUPINGS, *WINDOW_PARTS], id="binder"),
        pytest.param([*WINDOW_FUNCTIONS, *CHANGELOG_FUNCTIONS, *OWN_SYNTAX], id="syntax of their own"),
        pytest.param([name.upper() for name in list_built_in_names()], id="SHOW FUNCTIONS"),
        pytest.param(FLINK.split(), id="Flink"),
    ],
)
def test_every_function_that_can_be_called_is_on_the_page(names: list[str]) -> None:
    callable_names = {name for name in names if name.isidentifier()} - NOT_CALLABLE
    assert callable_names - documented_names() == set()
