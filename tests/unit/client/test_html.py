"""HTML for notebooks."""

from __future__ import annotations

import base64

from millstream.client import html


def test_texts_are_escaped_everywhere():
    hostile = "<script>'\"&"
    parts = [
        html.text(hostile),
        html.table([hostile], [[hostile]], hostile),
        html.facts(hostile, [(hostile, hostile)], [hostile]),
        html.picture("<svg/>", hostile),
        html.details(hostile, ""),
    ]
    assert all("<script" not in part and "&lt;script&gt;" in part for part in parts)
    assert '="<' not in parts[3]


def test_a_picture_is_an_embedded_image():
    data = html.picture("<svg>é</svg>", "a plan").split("base64,")[1].split('"')[0]
    assert base64.b64decode(data).decode() == "<svg>é</svg>"


def test_a_table_without_caption_has_no_caption_line():
    assert html.table(["a"], [["1"]]) == (
        "<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>"
    )
