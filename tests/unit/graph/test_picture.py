from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_graphs import by_key, diamond, linear, plan, sink, source, step, wide

from millstream.graph.execution_plan import ExecutionPlan
from millstream.graph.picture import svg
from millstream.types.factory import Types

SVG = "{http://www.w3.org/2000/svg}"


@st.composite
def plans(draw: st.DrawFn) -> ExecutionPlan:
    """Any small program: each step reads one to three earlier steps, by key or forwarded."""
    steps = [source(1, "Source: 1")]
    for number in range(2, draw(st.integers(2, 12)) + 1):
        above = draw(st.lists(st.integers(1, number - 1), max_size=3))
        inputs = [by_key(each) if draw(st.booleans()) else each for each in above]
        steps.append(step(number, f"step {number}", *inputs) if inputs else source(number, f"Source: {number}"))
    return plan(*steps, parallelism=draw(st.integers(1, 3)))


def boxes(picture: str) -> list[tuple[float, float, float, float]]:
    root = ElementTree.fromstring(picture)
    found = [rect for rect in root.iter(f"{SVG}rect") if rect.get("class") == "box"]
    return [tuple(float(rect.get(side, "")) for side in ("x", "y", "width", "height")) for rect in found]


def overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return (
        one[0] < other[0] + other[2]
        and other[0] < one[0] + one[2]
        and one[1] < other[1] + other[3]
        and other[1] < one[1] + one[3]
    )


@pytest.mark.parametrize("make", [linear, diamond, wide])
def test_every_vertex_has_a_box_and_every_exchange_an_arrow(make):
    drawn = make()
    root = ElementTree.fromstring(svg(drawn))
    assert len(boxes(svg(drawn))) == len(drawn.vertices)
    arrows = [path for path in root.iter(f"{SVG}path") if path.get("class") == "arrow"]
    assert len(arrows) == len(drawn.job.edges)


@settings(max_examples=60, deadline=None)
@given(plans())
def test_boxes_do_not_overlap(drawn):
    places = boxes(svg(drawn))
    assert not [
        (one, other) for index, one in enumerate(places) for other in places[index + 1 :] if overlap(one, other)
    ]


@settings(max_examples=60, deadline=None)
@given(plans())
def test_labels_do_not_overlap_each_other_or_boxes(drawn):
    picture = svg(drawn)
    found = [text for text in ElementTree.fromstring(picture).iter(f"{SVG}text") if text.get("class") == "label"]
    ends = [(float(text.get("x", "")), float(text.get("y", ""))) for text in found]
    areas = [
        (x - 7 * len(text.text or ""), y - 10, 7 * len(text.text or ""), 11.0) for text, (x, y) in zip(found, ends)
    ]
    assert not [1 for index, one in enumerate(areas) for other in areas[index + 1 :] if overlap(one, other)]
    assert not [1 for one in areas for box in boxes(picture) if overlap(one, box)]


@settings(deadline=None)
@given(st.text(), st.text())
def test_any_name_makes_a_well_formed_picture(name, uid):
    drawn = plan(
        source(1, name, uid=uid), step(2, name, by_key(1), key_type=Types.STRING()), sink(3, name, 2), name=name
    )
    assert len(boxes(svg(drawn))) == 2


def test_a_hostile_name_is_text():
    picture = svg(plan(source(1, "</text><script>alert(1)</script>"), name="]]><x onload='a()'/>"))
    assert not {element.tag for element in ElementTree.fromstring(picture).iter()} & {f"{SVG}script", f"{SVG}x"}


def test_a_long_name_is_shortened_and_complete_in_its_tooltip():
    name = "Source: " + "x" * 500
    root = ElementTree.fromstring(svg(plan(source(1, name))))
    assert max(len(text.text or "") for text in root.iter(f"{SVG}text")) < 60
    assert any((title.text or "").startswith(name) for title in root.iter(f"{SVG}title"))
    assert float(root.get("width", "")) < 800


def test_the_same_plan_gives_the_same_picture():
    assert svg(diamond()) == svg(diamond())
