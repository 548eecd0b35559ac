"""Stored pages and figures follow from the stored numbers, without computing."""

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from caveat.papers.catalogue import REPRODUCTIONS
from caveat.papers.page import Claim, judging
from caveat.papers.records import read_records
from caveat.papers.runner import regenerate

RESULTS = Path(__file__).parents[2] / "docs" / "results"
OPTIONS = {
    "table1": [{"protocol": p} for p in ("paper", "best", "flagship", "pbp", "vi")]
}
STORED = [
    pytest.param(each, options, id=" ".join([each.name, *options.values()]))
    for each in REPRODUCTIONS
    for options in OPTIONS.get(each.name, [{}])
]
NUMBERS_ONLY = [f"table1 {p['protocol']}" for p in OPTIONS["table1"]]


@pytest.fixture
def experiment(request, monkeypatch, real_data):
    each, options = request.param
    found = each.experiment(RESULTS, **options)

    def unwanted(*_):
        raise AssertionError("computed again")

    monkeypatch.setattr(type(found), "run", unwanted)
    monkeypatch.setattr(type(found), "extras", unwanted)
    return found


@pytest.mark.parametrize(
    "experiment", [pytest.param(p.values, id=p.id) for p in STORED], indirect=True
)
def test_page_and_figure_are_those_of_the_stored_numbers(experiment, tmp_path):
    page, figures = regenerate(experiment)
    assert page == experiment.path("md").read_text()
    for part, figure in figures.items():
        figure.savefig(tmp_path / "drawn.png")
        kept = imread(experiment.path("png", part))
        drawn = imread(tmp_path / "drawn.png")
        assert drawn.shape == kept.shape
        assert np.abs(drawn - kept).mean() < 1e-3  # another font moves pixels


@pytest.mark.parametrize(
    "experiment",
    [pytest.param(p.values, id=p.id) for p in STORED if p.id not in NUMBERS_ONLY],
    indirect=True,
)
def test_pages_hold_claims_with_what_was_found(experiment):
    records = read_records(experiment.path("csv"), experiment.record)
    parts = list(experiment.page(records))
    claims = [part for part in parts if isinstance(part, Claim)]
    assert claims and all(claim.words for claim in claims)
    assert all(c.found for c in claims) or "hold" in "".join(map(str, parts))


VERDICT = re.compile(
    r"\*\*(does not )?holds?\*\*|: (does not )?holds?\b|[Hh]olds for|is better\b"
    r"|no difference at|not decided by|\((better|worse|even)\)|\d [+=-] \|"
    r"|win/tie/lose .* \d+/\d"
)


@pytest.mark.parametrize(
    "experiment", [pytest.param(p.values, id=p.id) for p in STORED], indirect=True
)
def test_without_judging_no_page_has_a_verdict(experiment):
    """As those of smoke tests are written; the same page has them otherwise."""
    records = read_records(experiment.path("csv"), experiment.record)

    def found() -> list[str]:
        parts = [str(part) for part in experiment.page(records)]
        lines = [line for part in parts for line in part.splitlines()]
        return [line for line in lines if VERDICT.search(line)]

    assert found()
    with judging(False):
        assert [line for line in found() if "higher is better" not in line] == []
