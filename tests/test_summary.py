"""What objects say of themselves: predictives, posteriors and policies."""

import numpy as np
import pytest
import torch

import caveat
from caveat import decisions
from caveat._summary import TextSummary


def test_facts_are_lines_and_cells() -> None:
    summary = TextSummary("Title", {"a": "1", "longer": "2 < 3"})
    assert str(summary) == repr(summary) == "Title\n  a       1\n  longer  2 < 3"
    html = summary._repr_html_()
    assert html.startswith("<b>Title</b><table>") and html.count("<tr>") == 2
    assert "2 &lt; 3" in html and "2 < 3" not in html


def test_without_facts_it_is_its_title() -> None:
    assert str(TextSummary("Title")) == "Title"


def regression() -> caveat.GaussianPredictive:
    draws = torch.tensor([[[0.0], [1.0]], [[2.0], [1.0]]])
    return caveat.GaussianPredictive.from_draws(draws, precision=4.0)


def classification(rows: int = 400) -> caveat.CategoricalPredictive:
    logits = 8.0 * torch.eye(2).repeat(rows, 1)[:rows]
    return caveat.CategoricalPredictive.from_logits(logits.expand(3, rows, 2))


def posterior():
    x = np.arange(12.0).reshape(6, 2) ** 2
    return caveat.BayesianDropoutRegression().fit(x, x[:, 0]).posterior_


LABELS = torch.arange(400) % 2
SPOKEN = {
    "regression": (regression, ["not known, of the variance", "40% on average"]),
    "classification": (classification, ["0: 200, 1: 200", "Monte Carlo error"]),
    "posterior": (posterior, ["2 weights from 6 rows", "noise scale"]),
    "deferral": (
        lambda: decisions.defer(
            classification(), LABELS, target=decisions.ErrorRate(0.05)
        ),
        ["threshold", "100.0%", "promise"],
    ),
    "conformal sets": (
        lambda: decisions.conformal(classification(), LABELS),
        ["limit", "promise"],
    ),
    "conformal intervals": (
        lambda: decisions.conformal(
            regression()[:1].concatenate([regression()] * 20), np.zeros(40), level=0.8
        ),
        ["limit", "promise"],
    ),
}


@pytest.mark.parametrize("kind", SPOKEN)
def test_a_summary_has_the_most_important_numbers(kind: str) -> None:
    make, words = SPOKEN[kind]
    spoken = make()
    text = str(spoken.summary())
    for word in words:
        assert word in text
    assert text.startswith(type(spoken).__name__)
    assert spoken._repr_html_() == spoken.summary()._repr_html_()


def test_no_rows_have_a_summary_too() -> None:
    assert str(regression()[:0].summary()).startswith("GaussianPredictive: 0 rows")
