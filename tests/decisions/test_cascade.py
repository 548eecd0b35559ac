"""The cascade itself: lazy, consistent, and calibrated together."""

import numpy as np
import pytest
import torch

from caveat.decisions import Cascade, Person, Stage
from caveat.errors import InputTypeError, ParameterError, ShapeError
from tests.decisions.cascade_models import Model, constant, rows_of, stages

X = rows_of(400, 3)
TRUTH = np.ones(400, dtype=int)


def test_each_stage_runs_only_on_what_is_left():
    models = [Model(0), Model(1)]
    cascade = Cascade([*models, Person(9.0)], thresholds=[0.2, 0.3])
    answer = cascade.run(X)
    doubts = [Stage(m).doubt(m.predictive(X)) for m in (Model(0), Model(1))]
    passed = doubts[0] > 0.2
    assert models[0].seen == [400]
    assert models[1].seen == [passed.sum()]
    assert answer.n_run == (400, passed.sum(), (passed & (doubts[1] > 0.3)).sum())
    np.testing.assert_array_equal(
        answer.for_person, np.flatnonzero(passed & (doubts[1] > 0.3))
    )
    np.testing.assert_array_equal(answer.stage == 0, ~passed)


def test_labels_are_those_of_the_stage_that_answered():
    answer = Cascade([*stages(2), Person(9.0)], thresholds=[0.2, 0.3]).run(X)
    errs = np.stack([X[:, 1], X[:, 3]]) > 0
    for k in (0, 1):
        rows = answer.stage == k
        np.testing.assert_array_equal(answer.label[rows], 1 - errs[k, rows])
    assert (answer.label[answer.stage == 2] == -1).all()
    with pytest.raises(InputTypeError, match="mean is for regressions"):
        answer.mean  # noqa: B018


def test_regressions():
    x = rows_of(50, 1)
    fast, slow = Stage(constant(1.0), cost=1), Stage(constant(2.0), cost=5)
    cascade = Cascade([fast, slow, Person(20.0)], thresholds=[0.305, 0.605])
    answer = cascade.run(x)
    wanted = np.select([x[:, 0] <= 0.3, x[:, 0] <= 0.6], [1.0, 2.0], np.nan)
    np.testing.assert_allclose(answer.mean, wanted)
    report = cascade.report(x, np.full(50, 2.0))
    assert [s.risk for s in report.stages] == pytest.approx([1.0, 0.0, 0.0])
    with pytest.raises(InputTypeError, match="label is for classifications"):
        answer.label  # noqa: B018


def test_report_agrees_with_the_run():
    cascade = Cascade(stages(3), thresholds=[0.2, 0.25])
    answer, report = cascade.run(X), cascade.report(X, TRUTH)
    assert report.accuracy == pytest.approx((answer.label == TRUTH).mean())
    assert [s.reached * 400 for s in report.stages] == pytest.approx(answer.n_run)
    spent = np.dot(answer.n_run, [1.0, 10.0, 100.0]) / 400
    assert report.cost == pytest.approx(spent)


@pytest.mark.parametrize("budget", [1.0, 8.0, 40.0, 111.0])
def test_a_budget_is_kept_and_more_money_is_no_worse(budget):
    cascade = Cascade(stages(3)).calibrate(X, TRUTH, budget=budget)
    assert cascade.calibration.cost <= budget + 1e-9
    again = cascade.report(X, TRUTH)
    assert repr(again) == repr(cascade.calibration)  # NaN is not NaN
    richer = Cascade(stages(3)).calibrate(X, TRUTH, budget=budget * 1.5)
    assert richer.calibration.risk <= cascade.calibration.risk


def test_a_risk_is_kept_at_the_smallest_cost():
    cascade = Cascade([*stages(3), Person(1000.0)])
    chosen = cascade.calibrate(X, TRUTH, risk=0.02)
    assert chosen.calibration.risk <= 0.02
    frontier = cascade.frontier(X, TRUTH)
    wanted = frontier.cost[frontier.risk <= 0.02].min()
    assert chosen.calibration.cost == pytest.approx(wanted)
    assert cascade.thresholds is None  # a new one was made


def test_thresholds_chosen_together_beat_those_chosen_one_by_one():
    """One by one: each stage keeps the risk on what it answers."""
    cascade = Cascade(stages(3))
    target = 0.3
    joint = cascade.calibrate(X, TRUTH, risk=target).calibration
    left, single = np.ones(400, bool), []
    for k, stage in enumerate(stages(3)[:2]):
        doubt, errs = stage.doubt(stage(X)), X[:, 2 * k + 1] > 0
        kept = [
            t
            for t in np.unique(doubt[left])
            if errs[left & (doubt <= t)].mean() <= target
        ]
        single.append(max(kept, default=-np.inf))
        left = left & (doubt > single[-1])
    alone = Cascade(stages(3), thresholds=single).report(X, TRUTH)
    assert joint.risk <= target
    assert joint.cost < alone.cost


def test_measured_costs_are_seconds_and_are_kept():
    cascade = Cascade([Model(0), Model(1)]).calibrate(X, TRUTH, risk=1.0)
    assert all(0 < cost < 0.1 for cost in cascade.costs)
    report = cascade.report(X, TRUTH)
    assert tuple(s.cost for s in report.stages) == cascade.costs


def test_tensors():
    x = torch.from_numpy(X)
    answer = Cascade(stages(2), thresholds=[0.2]).run(x)
    np.testing.assert_array_equal(
        answer.label, Cascade(stages(2), thresholds=[0.2]).run(X).label
    )


def test_all_sure_at_once():
    models = [Model(0), Model(1)]
    answer = Cascade(models, thresholds=[np.inf]).run(X)
    assert models[1].seen == []
    assert answer.n_run == (400, 0)
    assert not len(answer.for_person)


def test_bad_input():
    with pytest.raises(ParameterError, match="two or more stages"):
        Cascade([Model(0)])
    with pytest.raises(ParameterError, match="a Person only at the end"):
        Cascade([Person(1.0), Model(0)])
    with pytest.raises(ParameterError, match="cost of all models or of none"):
        Cascade([Stage(Model(0), cost=1), Model(1)])
    with pytest.raises(ShapeError, match=r"each stage but the last, 1. Got 2"):
        Cascade(stages(2), thresholds=[0.1, 0.2])
    cascade = Cascade(stages(2))
    with pytest.raises(ParameterError, match="no thresholds yet"):
        cascade.run(X)
    with pytest.raises(ParameterError, match="either budget= or risk="):
        cascade.calibrate(X, TRUTH)
    with pytest.raises(ParameterError, match="budget must be at least 1,"):
        cascade.calibrate(X, TRUTH, budget=0.5)
    with pytest.raises(ShapeError, match="at least one row"):
        Cascade(stages(2), thresholds=[0.1]).run(X[:0])
    mixed = Cascade([Model(0), constant(1.0)], thresholds=[0.0])
    with pytest.raises(InputTypeError, match="all classifications"):
        mixed.run(X)
