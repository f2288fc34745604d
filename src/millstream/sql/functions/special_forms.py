"""Functions and operators that the binder translates itself, because they have syntax or typing rules of their own.

Promises: each has a line of the reference page.
Does not know: how a form is translated; `bind` does that.

Most of them become other expressions: IF becomes CASE, BETWEEN two comparisons, EXISTS a join, TUMBLE_START a column of
a window. So they have no entry in the registry of functions that are computed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SpecialForm:
    """A function or operator that the binder translates itself."""

    name: str
    category: str
    syntax: str
    doc: str


_GROUP_WINDOWS = {"TUMBLE": "time, size", "HOP": "time, slide, size", "SESSION": "time, gap"}
_GROUP_WINDOW_PARTS = {
    "START": "Returns the inclusive start of the group window.",
    "END": "Returns the exclusive end of the group window.",
    "ROWTIME": "Returns the rowtime attribute of the group window: its last millisecond.",
    "PROCTIME": "Returns the processing time attribute of the group window.",
}
_FORMS = (
    SpecialForm(
        "BETWEEN", "comparison", "value1 [NOT] BETWEEN [ASYMMETRIC | SYMMETRIC] value2 AND value3",
        "Returns TRUE if value1 is not less than value2 and not greater than value3. With SYMMETRIC, value2 and value3 "
        "can have any order.",
    ),
    SpecialForm(
        "EXISTS", "comparison", "[NOT] EXISTS (subquery)", "Returns TRUE if the subquery returns at least one row."
    ),
    SpecialForm(
        "IN subquery", "comparison", "value [NOT] IN (subquery)",
        "Returns TRUE if the value is equal to a row of the subquery.",
    ),
    SpecialForm(
        "CASE", "conditional", "CASE [value] WHEN value1 THEN result1 [...] [ELSE result] END",
        "Returns the result of the first WHEN that is equal to the value. Without a value, each WHEN is a condition. "
        "Returns the result of ELSE (NULL if not given) if none applies.",
    ),
    SpecialForm(
        "IF", "conditional", "IF(condition, value1, value2)",
        "Returns value1 if the condition is TRUE, else value2.",
    ),
    SpecialForm(
        "CAST", "conversion", "CAST(value AS type)",
        "Converts the value to the type. Fails if it cannot be converted.",
    ),
    SpecialForm(
        "TRY_CAST", "conversion", "TRY_CAST(value AS type)",
        "Converts the value to the type. Returns NULL if it cannot be converted.",
    ),
    SpecialForm("CURRENT_DATABASE", "catalog", "CURRENT_DATABASE()", "Returns the name of the current database."),
    SpecialForm(
        "GROUPING", "grouping", "GROUPING(key, ...)",
        "Returns an integer in which the bit of each key is 1 if the row is aggregated over that key in GROUPING SETS, "
        "CUBE or ROLLUP.",
    ),
    SpecialForm("GROUPING_ID", "grouping", "GROUPING_ID(key, ...)", "Returns the same as GROUPING."),
    SpecialForm(
        "GROUP_ID", "grouping", "GROUP_ID()", "Returns 0, because each combination of grouping keys occurs once."
    ),
    *(
        SpecialForm(f"{window}_{part}", "group window", f"{window}_{part}({arguments})", doc)
        for window, arguments in _GROUP_WINDOWS.items()
        for part, doc in _GROUP_WINDOW_PARTS.items()
    ),
    SpecialForm(
        "TUMBLE", "table-valued", "TUMBLE(TABLE data, DESCRIPTOR(time), size [, offset])",
        "Assigns each row to one window of a fixed size. Adds the columns window_start, window_end and window_time.",
    ),
    SpecialForm(
        "HOP", "table-valued", "HOP(TABLE data, DESCRIPTOR(time), slide, size [, offset])",
        "Assigns each row to all windows of a fixed size that contain it; a window starts every `slide`.",
    ),
    SpecialForm(
        "CUMULATE", "table-valued", "CUMULATE(TABLE data, DESCRIPTOR(time), step, size [, offset])",
        "Assigns each row to windows with the same start that grow by `step` up to `size`.",
    ),
    SpecialForm(
        "SESSION", "table-valued", "SESSION(TABLE data [PARTITION BY key, ...], DESCRIPTOR(time), gap)",
        "Assigns each row to a session window, which ends when no row arrives for the time `gap`.",
    ),
    SpecialForm(
        "UNNEST", "table-valued", "UNNEST(collection) [WITH ORDINALITY]",
        "Returns one row for each element of an array or multiset, or for each entry of a map.",
    ),
    SpecialForm(
        "TO_CHANGELOG", "table-valued",
        "TO_CHANGELOG(input => TABLE data [, op => DESCRIPTOR(op)] [, op_mapping => MAP])",
        "Converts an updating table to an append-only table with a column for the row kind.",
    ),
    SpecialForm(
        "FROM_CHANGELOG", "table-valued",
        "FROM_CHANGELOG(input => TABLE data [, op => DESCRIPTOR(op)] [, op_mapping => MAP])",
        "Converts an append-only table with a column for the row kind to an updating table.",
    ),
    SpecialForm(
        "FIRST", "pattern", "FIRST(variable.column [, n])",
        "Returns the value of a row that is mapped to the pattern variable: the first row, or the n-th after it.",
    ),
    SpecialForm(
        "LAST", "pattern", "LAST(variable.column [, n])",
        "Returns the value of a row that is mapped to the pattern variable: the last row, or the n-th before it.",
    ),
    SpecialForm(
        "MATCH_ROWTIME", "pattern", "MATCH_ROWTIME()", "Returns the rowtime attribute of the last row of the match."
    ),
    SpecialForm(
        "MATCH_PROCTIME", "pattern", "MATCH_PROCTIME()", "Returns the processing time attribute of the match."
    ),
)  # fmt: skip
SPECIAL_FORMS = {form.name: form for form in _FORMS}
