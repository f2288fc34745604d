"""Date and time patterns that are compared with Flink's; the recorder and the test share this file."""

from __future__ import annotations

from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden" / "sql" / "ends" / "date_patterns.json"

TIMESTAMPS = (
    "2020-12-30 15:04:05.678000000",
    "2021-01-03 00:00:00.000000000",
    "2021-01-04 12:00:00.123456789",
    "2024-02-29 23:59:59.999999999",
    "1969-07-20 20:17:40.000000001",
    "0099-03-05 06:07:08.100000000",
    "2023-09-10 11:30:00.050000000",
)
_LETTERS = "GuyDMLdQqYwWEecFaBhKkHmsSAnNVvzOXxZgbCfiIjJloPrRtTU"
#: Patterns of DATE_FORMAT of timestamps: every letter in every length, and what people write.
PATTERNS = (
    *(letter * count for letter in _LETTERS for count in range(1, 7)),
    *("SSSSSSS", "SSSSSSSSS", "SSSSSSSSSS", "NNNNNNNNNNNNNNNN", "AAAAAAAAAA", "nnnnnnnnnn", "yyyyyyyyyy"),
    *("yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd'T'HH:mm:ss.SSS", "yyyyMMddHHmmss", "''", "'o''clock'", "h 'o''clock' a"),
    *("ppH", "pppd", "p", "pp", "ppppMMM", "ppMMMM", "[yyyy]", "[yyyy[-MM]", "yyyy]", "[yyyy-MM-dd[ HH:mm[XXX]]]"),
    *("[z]x", "yyyy#", "{yyyy}", "'open", "", "yyyy-MM-ddTHH:mm", "EEE, d MMM yyyy", "EEEE d MMMM", "YYYY-'W'ww-e"),
    *("QQQ yyyy", "hh:mm a", "h:mm B", "dd.MM.yy", "yyyy/MM/dd HH-mm", "DDD", "DDDD", "KK:mm", "kk:mm", "MMM-yy"),
    *("G yyyy", "A n N", "yyyy-MM-dd HH:mm:ss.SSSSSS", "日yyyy", "yyyy\tMM", "HH|mm", "u-DDD"),
)
#: Patterns of FROM_UNIXTIME and of DATE_FORMAT of texts.
SIMPLE_PATTERNS = (
    *(letter * count for letter in "GyYMLwWDdFEuaHkKhmsSzZXbcefgiIjJlnNoOpPqQrRtTUvVxAB" for count in range(1, 6)),
    *("yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd'T'HH:mm:ss.SSS", "''", "h 'o''clock' a", "'open", "[yyyy]", "", "yyyy#"),
    *("EEE, d MMM yyyy HH:mm:ss Z", "YYYY-'W'ww-u"),
)
SECONDS = (0, 44, 1609340645, 1609632000, 1709251199, -14182940)
ZONES = ("UTC", "Asia/Shanghai", "America/New_York")
#: Texts that TO_TIMESTAMP parses.
PARSED = (
    ("2024-01-02 03:04:05", "yyyy-MM-dd HH:mm:ss"),
    ("2024-1-2 3:4:5", "yyyy-M-d H:m:s"),
    ("2024-1-2 3:4:5", "yyyy-MM-dd HH:mm:ss"),
    ("2024-1-2", "yyyy-MM-dd HH:mm:ss"),
    ("2024-01-02", "yyyy/MM/dd"),
    ("20240102030405", "yyyyMMddHHmmss"),
    ("20240102030405678", "yyyyMMddHHmmssSSS"),
    ("2024-01-02 03:04:05.678", "yyyy-MM-dd HH:mm:ss.SSS"),
    ("2024-01-02 03:04:05.6", "yyyy-MM-dd HH:mm:ss.SSS"),
    ("2024-01-02 03:04:05.6", "yyyy-MM-dd HH:mm:ss.S"),
    ("2024-01-02 03:04:05.678 x", "yyyy-MM-dd HH:mm:ss.SSS"),
    (" 2024-01-02 03:04:05", "yyyy-MM-dd HH:mm:ss"),
    ("2024-01-02T03:04:05Z", "yyyy-MM-dd'T'HH:mm:ssX"),
    ("2024-01-02T03:04:05+02:00", "yyyy-MM-dd'T'HH:mm:ssXXX"),
    ("2024-01-02T03:04:05+0200", "yyyy-MM-dd'T'HH:mm:ssZ"),
    ("2024-01-02T03:04:05+0200", "yyyy-MM-dd'T'HH:mm:ssxx"),
    ("2024-01-02 03:04:05 UTC", "yyyy-MM-dd HH:mm:ss z"),
    ("2024-01-02 03:04:05 Europe/Paris", "yyyy-MM-dd HH:mm:ss VV"),
    ("02/Jan/2024:03:04:05 +0000", "dd/MMM/yyyy:HH:mm:ss Z"),
    ("02/jan/2024:03:04:05 +0000", "dd/MMM/yyyy:HH:mm:ss Z"),
    ("2 January 2024", "d MMMM yyyy"),
    ("Tue, 2 Jan 2024", "EEE, d MMM yyyy"),
    ("Mon, 2 Jan 2024", "EEE, d MMM yyyy"),
    ("Tuesday 2 Jan 2024", "EEEE d MMM yyyy"),
    ("2024-01-02 03:04 PM", "yyyy-MM-dd hh:mm a"),
    ("2024-01-02 12:04 AM", "yyyy-MM-dd hh:mm a"),
    ("2024-01-02 03:04 pm", "yyyy-MM-dd hh:mm a"),
    ("2024-01-02 03:04", "yyyy-MM-dd hh:mm"),
    ("2024-01-02 24:00:00", "yyyy-MM-dd HH:mm:ss"),
    ("2024-01-02 24:04:05", "yyyy-MM-dd HH:mm:ss"),
    ("2024-01-02 24:04:05", "yyyy-MM-dd kk:mm:ss"),
    ("2024-02-30 00:00:00", "yyyy-MM-dd HH:mm:ss"),
    ("2024-02-32 00:00:00", "yyyy-MM-dd HH:mm:ss"),
    ("2024-13-01 00:00:00", "yyyy-MM-dd HH:mm:ss"),
    ("2024", "yyyy"),
    ("2024-05", "yyyy-MM"),
    ("05-06", "MM-dd"),
    ("03:04", "HH:mm"),
    ("24-05-06", "yy-MM-dd"),
    ("99-05-06", "yy-MM-dd"),
    ("024-05-06", "yyy-MM-dd"),
    ("12024-05-06", "yyyy-MM-dd"),
    ("+12024-05-06", "yyyy-MM-dd"),
    ("2024-060", "yyyy-DDD"),
    ("2024-60", "uuuu-D"),
    ("2024-W01-2", "YYYY-'W'ww-e"),
    ("2024-01-02", "yyyy-MM-dd[ HH:mm]"),
    ("2024-01-02 03:04", "yyyy-MM-dd[ HH:mm]"),
    ("2024-01-02 03:04:05", "yyyy-MM-dd[ HH:mm[:ss]]"),
    ("2024 AD", "yyyy G"),
    ("2024 1", "yyyy Q"),
    ("11096789", "A"),
    ("2024-01-02 5", "yyyy-MM-dd n"),
    ("o'clock 3", "'o''clock' H"),
    ("2024-01-02  3", "yyyy-MM-dd ppH"),
    ("2024-01-02 03", "yyyy-MM-dd HH:mm"),
    ("", "yyyy"),
    ("2024-01-02T03:04", "yyyy-MM-ddTHH:mm"),
    ("2024-01-02 03:04:05.123456789", "yyyy-MM-dd HH:mm:ss.SSSSSSSSS"),
)
#: Texts that UNIX_TIMESTAMP and TO_DATE parse.
SIMPLE_PARSED = (
    ("2024-01-02 03:04:05", "yyyy-MM-dd HH:mm:ss"),
    ("2024-1-2 3:4:5", "yyyy-MM-dd HH:mm:ss"),
    ("2024-01-02 03:04:05 more", "yyyy-MM-dd HH:mm:ss"),
    (" 2024-01-02 03:04:05", "yyyy-MM-dd HH:mm:ss"),
    ("2024-13-32 25:61:61", "yyyy-MM-dd HH:mm:ss"),
    ("20240102", "yyyyMMdd"),
    ("24-01-02", "yy-MM-dd"),
    ("60-01-02", "yy-MM-dd"),
    ("02/jan/2024", "dd/MMM/yyyy"),
    ("2 January 2024", "d MMM yyyy"),
    ("Mon 2 Jan 2024", "EEE d MMM yyyy"),
    ("2024-01-02 03:04 pm", "yyyy-MM-dd hh:mm a"),
    ("2024-01-02T03:04:05.67", "yyyy-MM-dd'T'HH:mm:ss.SSS"),
    ("2024-01-02T03:04:05Z", "yyyy-MM-dd'T'HH:mm:ssX"),
    ("2024-01-02T03:04:05+02:00", "yyyy-MM-dd'T'HH:mm:ssXXX"),
    ("2024-01-02T03:04:05+0200", "yyyy-MM-dd'T'HH:mm:ssZ"),
    ("2024-01-02 03:04:05 PST", "yyyy-MM-dd HH:mm:ss z"),
    ("2024", "yyyy"),
    ("05-06", "MM-dd"),
    ("03:04", "HH:mm"),
    ("2024-060", "yyyy-DDD"),
    ("2024-W01-2", "YYYY-'W'ww-u"),
    ("2024/01/02", "yyyy-MM-dd"),
    ("", "yyyy"),
    ("2024-01-02", "yyyy-MM-dd HH"),
)
