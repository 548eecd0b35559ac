"""Charts stay inside their frame, and ticks beside each other."""

import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np
import pytest

from caveat.reports.svg import WIDTH, Chart, Scale, histogram, legend, tick_labels

RANGES = [(0, 1), (-3.2, 7.9), (1e-9, 3e-9), (1e6, 1e6 + 3), (-1e30, 1e30), (5, 5)]


def chart(x, y, **more):
    return Chart("c", "a <title>", "what & why", x, y, "x " * 60, "y " * 60, **more)


@pytest.mark.parametrize("ends", RANGES)
def test_ticks_are_round_and_do_not_overlap(ends):
    scale = Scale.around(ends)
    assert scale.low < scale.high
    made = chart(scale, scale)
    labels = made._x_labels()
    for (here, left), (there, right) in pairwise(labels):
        assert there - here >= 6.0 * (len(left) + len(right)) / 2
    ticks = scale.ticks()
    assert 1 <= len(ticks) <= 6 and all(scale.low <= t <= scale.high for t in ticks)
    assert len(set(tick_labels(ticks))) == len(ticks) or ends[0] == 1e6


def test_a_chart_is_well_formed_and_says_what_it_shows():
    made = chart(Scale(0.0, 1.0), Scale(0.0, 1.0))
    xs = np.array([0.0, 0.5, np.nan, 1.0])
    made.line(xs, xs, "line")
    made.band(xs, xs - 0.1, xs + 0.1)
    made.dots(xs, xs, "dot")
    made.crosses(xs, xs, "cross")
    made.uprights(xs, xs - 0.1, xs + np.inf, "range")
    made.bars([0.0, 0.5, 1.0], [0.2, 0.0], "bar", ["<one>", "two"])
    made.tips(xs[:2], ["a", "b"])
    made.marker(0.5, 0.5)
    root = ElementTree.fromstring(made.render())
    assert root.attrib["role"] == "img" and root.attrib["viewBox"].startswith("0 0")
    title, desc = root[0], root[1]
    assert root.attrib["aria-labelledby"] == f"{title.get('id')} {desc.get('id')}"
    assert title.text == "a <title>" and desc.text == "what & why"
    assert "nan" not in made.render() and "inf" not in made.render()
    tips = [hit.find("title").text for hit in root.find("g[@class='hits']")]
    assert tips == ["<one>", "two", "a", "b"]


def test_marks_outside_of_the_scale_stay_near_the_frame():
    made = chart(Scale(0.0, 1.0), Scale(0.0, 1.0))
    made.dots([-1e9, 1e9], [1e9, -1e9], "dot")
    places = re.findall(r"M([-\d.]+) ([-\d.]+)h0", made.render())
    assert all(-1 <= float(x) <= WIDTH + 10 for x, _ in places)


def test_histograms_leave_out_what_is_far_and_say_so():
    values = np.concatenate([np.linspace(0.0, 1.0, 100), [1e6, np.inf]])
    edges, counts, beyond = histogram(values)
    assert edges[-1] < 10 and counts.sum() == 100 and beyond == 2
    edges, counts, beyond = histogram(np.full(20, 3.0))
    assert len(counts) == 1 and counts[0] == 20 and beyond == 0
    assert edges[0] < 3.0 < edges[1]
    assert histogram(np.array([np.inf]))[2] == 1


def test_a_legend_has_words():
    assert "observed &lt;" in legend(("dot", "observed <"))
