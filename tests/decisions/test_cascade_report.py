"""Reports against counting by hand."""

import numpy as np
import pytest

from caveat.decisions import Person
from caveat.decisions.cascade.report import report_on
from caveat.decisions.cascade.search import Trial
from caveat.errors import ParameterError
from tests.decisions.cascade_models import stages

# Four rows: two are answered by m0, one by m1, one by the person.
TRIAL = Trial(
    np.array([[0.1, 0.2, 0.9, 0.8], [0.0, 0.0, 0.1, 0.7]]),
    np.array([[0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0], [0.1] * 4]),
    np.array([1.0, 10.0, 50.0]),
)
REPORT = report_on(TRIAL, (0.5, 0.5), [*stages(2), Person(50.0)], of_labels=True)


def test_numbers():
    small, large, person = REPORT.stages
    assert [s.share for s in REPORT.stages] == [0.5, 0.25, 0.25]
    assert [s.reached for s in REPORT.stages] == [1.0, 0.5, 0.25]
    assert [s.spent for s in REPORT.stages] == [1.0, 5.0, 12.5]
    assert (small.accuracy, large.accuracy, person.accuracy) == (0.5, 1.0, 0.9)
    assert REPORT.accuracy == pytest.approx(1 - 1.1 / 4)
    assert REPORT.cost == pytest.approx(18.5)
    assert (REPORT.slow_name, REPORT.slow_cost, REPORT.slow_risk) == ("m1", 10.0, 0.25)
    assert REPORT.saving == pytest.approx(-0.85)
    assert REPORT.compute_saving == pytest.approx(0.4)
    loss = np.array([0.0, 1.0, 0.0, 0.1])
    assert REPORT.risk_error == pytest.approx(loss.std(ddof=1) / 2)


def test_text_says_it_all():
    text = str(REPORT)
    assert "saving -85.0% (40.0% without what the person costs)" in text
    lines = text.splitlines()
    assert len({len(line) for line in lines[:-1]}) == 1
    assert lines[1].split() == ["m0", "0.5", "100.0%", "50.0%", "50.00%", "1", "1"]


def test_a_stage_without_answers_and_a_regression():
    report = report_on(
        TRIAL, (-np.inf, np.inf), [*stages(2), Person(50.0)], of_labels=False
    )
    assert np.isnan(report.stages[0].risk)
    assert report.saving == pytest.approx(-0.1)
    assert "person costs" not in str(report)
    with pytest.raises(ParameterError, match="accuracy is for labels"):
        report.accuracy  # noqa: B018
