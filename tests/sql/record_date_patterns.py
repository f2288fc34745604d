"""Records what the real Flink's functions of date patterns return; no job is run, its runtime functions are called.

PYTHON_WITH_APACHE_FLINK tests/sql/record_date_patterns.py"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from date_pattern_cases import GOLDEN, PARSED, PATTERNS, SECONDS, SIMPLE_PARSED, SIMPLE_PATTERNS, TIMESTAMPS, ZONES
from py4j.protocol import Py4JJavaError
from pyflink.java_gateway import get_gateway


def record_call(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or the class and message of its exception."""
    try:
        value = call()
    except Py4JJavaError as problem:
        cause = problem.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        return {"error": str(cause.getClass().getSimpleName())}
    return value if value is None or isinstance(value, int) else str(value)


def main() -> None:
    jvm = get_gateway().jvm
    functions = jvm.org.apache.flink.table.utils.DateTimeUtils
    zones = {zone: jvm.java.util.TimeZone.getTimeZone(zone) for zone in ZONES}
    utc = zones["UTC"]
    moments = []
    for text in TIMESTAMPS:
        local = jvm.java.time.LocalDateTime.parse(text.replace(" ", "T"))
        moments.append(jvm.org.apache.flink.table.data.TimestampData.fromLocalDateTime(local))
    content = {
        "locale": str(jvm.java.util.Locale.getDefault().toString()),
        "format": {
            pattern: [record_call(lambda m=m, p=pattern: functions.formatTimestamp(m, p)) for m in moments]
            for pattern in PATTERNS
        },
        "format_seconds": {
            zone: {
                pattern: [
                    record_call(lambda s=s, p=pattern, z=zone: functions.formatUnixTimestamp(s, p, zones[z]))
                    for s in SECONDS
                ]
                for pattern in SIMPLE_PATTERNS
            }
            for zone in ZONES
        },
        "parse": [
            [text, pattern, record_call(lambda t=text, p=pattern: functions.parseTimestampData(t, p, 9))]
            for text, pattern in PARSED
        ],
        "parse_seconds": [
            [text, pattern, record_call(lambda t=text, p=pattern: functions.unixTimestamp(t, p, utc))]
            for text, pattern in SIMPLE_PARSED
        ],
    }
    GOLDEN.write_text(json.dumps(content, ensure_ascii=False).replace("], ", "],\n") + "\n")


if __name__ == "__main__":
    main()
