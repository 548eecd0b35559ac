"""FrameModel: answers as columns, which no neighbour changes; policies on top."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import caveat
from caveat import decisions, evaluation
from caveat.errors import (
    CaveatWarning,
    DataError,
    InputTypeError,
    ParameterError,
)
from caveat.frames import Asking, FrameModel, as_source
from tests.frames.data import linear_model, mixed, quick_labels, quick_model

FRAME = mixed()
NEW = mixed(300, seed=1)


@pytest.fixture(scope="module")
def model():
    return quick_model()


@pytest.fixture(scope="module")
def labels():
    return quick_labels()


def test_columns_of_a_regression(model):
    found = model.predict_table(NEW, level=0.8)
    assert found.schema.names == [
        "y_mean",
        "y_std",
        "y_lower",
        "y_upper",
        "y_epistemic",
    ]
    predictive = model.predictive(NEW)
    lower, upper = predictive.interval(0.8)
    for name, values in [
        ("mean", predictive.mean),
        ("std", predictive.std),
        ("lower", lower),
        ("upper", upper),
        ("epistemic", predictive.epistemic_variance.sqrt()),
    ]:
        np.testing.assert_allclose(found[f"y_{name}"], values, rtol=1e-6)


def test_columns_of_a_classification(labels):
    found = labels.predict_table(NEW)
    assert found.schema.names == [
        "label_label",
        "label_prob_high",
        "label_prob_low",
        "label_entropy",
        "label_mutual_information",
    ]
    predictive = labels.predictive(NEW)
    np.testing.assert_allclose(
        found["label_prob_low"], predictive.probs[:, 1], rtol=1e-9
    )
    best = np.where(np.array(found["label_prob_low"]) > 0.5, "low", "high")
    assert found["label_label"].to_pylist() == best.tolist()


@pytest.mark.parametrize(
    ("labels", "kind", "name"),
    [
        ([True, False], pa.bool_(), "y_prob_true"),
        ([3, 7], pa.int64(), "y_prob_7"),
        (["a", "b"], pa.string(), "y_prob_b"),
        ([1.0, 2.0], pa.int64(), "y_prob_2"),
    ],
)
def test_labels_keep_their_type(labels, kind, name):
    x = np.linspace(-1, 1, 40)
    table = {"x": x, "y": [labels[int(v > 0)] for v in x]}
    model = FrameModel.fit(table, target="y", classify=True, preset="fast")
    found = model.predict_table({"x": [-1.0, 1.0]})
    assert found.schema.field("y_label").type == kind
    assert found["y_label"].to_pylist() == labels and name in found.schema.names
    places = [sorted(labels).index(label) for label in table["y"]]
    assert model.targets(table).tolist() == places


def assert_alike(found, expected):
    """Equal up to rounding; ends of intervals are known to 1e-6 standard deviations."""
    for name in expected.schema.names:
        if pa.types.is_floating(expected[name].type):
            ends = name.endswith(("_lower", "_upper"))
            atol = 4e-6 if ends else 1e-12
            np.testing.assert_allclose(
                found[name], expected[name], rtol=1e-9, atol=atol
            )
        else:
            assert found[name].equals(expected[name])


@pytest.mark.parametrize("kind", ["regression", "labels", "linear", "pool", "policies"])
@pytest.mark.parametrize("settings", [{}, {"tolerance": 0.05}], ids=str)
def test_a_row_does_not_know_its_neighbours(kind, settings, model, labels):
    """To the last bit if it keeps its place among 256, up to rounding elsewhere."""
    if kind == "pool":
        model = FrameModel.fit(FRAME, target="y", drop=["label"], preset="fast")
    elif kind == "policies":
        held_out = model.predictive(FRAME)
        model = model.attach(
            decisions.conformal(held_out, FRAME["y"].to_numpy()),
            decisions.defer(
                held_out, FRAME["y"].to_numpy(), target=decisions.Coverage(0.5)
            ),
        )
    own = {"labels": labels, "linear": linear_model()}.get(kind, model)
    whole = own.predict_table(NEW, **settings)
    for start, stop in ((0, 1), (0, 60), (0, 256), (256, 257), (256, 300)):
        part = own.predict_table(NEW.iloc[start:stop], **settings)
        assert part.equals(whole.slice(start, stop - start))
    for start, stop in ((7, 8), (100, 160), (255, 258), (290, 300)):
        part = own.predict_table(NEW.iloc[start:stop], **settings)
        assert_alike(part, whole.slice(start, stop - start))
    turned = own.predict_table(NEW.iloc[::-1], **settings)
    assert_alike(turned, whole.take(np.arange(len(NEW))[::-1]))


def test_draws_and_seeds(model):
    same = model.predict_table(NEW[:5], seed=0)
    assert same.equals(model.predict_table(NEW[:5]))
    other = model.predict_table(NEW[:5], seed=1)
    assert not other.equals(same)
    np.testing.assert_allclose(other["y_mean"], same["y_mean"], atol=0.5)
    assert not model.predict_table(NEW[:5], n_draws=7).equals(same)
    assert model.predictive(NEW[:5], n_draws=7).n_draws == 7
    assert model.estimator.n_draws == 50


def test_a_tolerance_is_kept_by_each_row(model):
    """All 300 means are within six errors; by chance less than once in a million."""
    wide = model.predict_table(NEW, tolerance=0.01)
    true = model.predict_table(NEW, n_draws=6400, seed=1)
    gap = np.abs(np.array(wide["y_mean"]) - np.array(true["y_mean"]))
    assert (gap < 6 * 0.01 * 2**0.5 * np.array(true["y_std"])).all()
    asking = Asking.of(tolerance=0.01)
    assert asking.is_enough(model.predictive(NEW, n_draws=6400)).all()
    few = asking.is_enough(model.predictive(NEW, n_draws=4))
    assert 0 < few.sum() < len(few)


@pytest.mark.parametrize(
    "given", [{"level": 1.5}, {"n_draws": 0}, {"tolerance": 0.0}, {"level": "x"}]
)
def test_asking_for_what_makes_no_sense(given):
    with pytest.raises((ParameterError, InputTypeError)):
        Asking.of(**given)
    with pytest.raises(ParameterError, match="not both"):
        Asking.of(n_draws=5, tolerance=0.1)


def test_tables_of_all_makes(model):
    arrow = as_source(NEW).whole()
    whole = model.predict_table(arrow)
    polars = pytest.importorskip("polars")
    for other in (
        arrow.to_batches()[0],
        NEW.to_dict("records"),
        polars.from_arrow(arrow),
        {name: arrow[name] for name in arrow.schema.names},
    ):
        assert model.predict_table(other).equals(whole)
    with pytest.raises(InputTypeError, match="Got ndarray"):
        model.predict_table(np.zeros((3, 2)))
    with pytest.raises(DataError, match="has none"):
        model.predict_table(NEW[:0])


def test_policies(model, labels, tmp_path):
    y = FRAME["y"].to_numpy()
    held_out = model.predictive(FRAME)
    found = model.attach(evaluation.calibrate(held_out, y))
    found = found.attach(decisions.conformal(found.predictive(FRAME), y, level=0.9))
    policy = decisions.defer(found.predictive(FRAME), y, target=decisions.Coverage(0.8))
    found = found.attach(policy)
    assert model.calibration is None and found.deferral is policy
    caveat.save(found, tmp_path / "m")
    table = caveat.load(tmp_path / "m").predict_table(NEW, level=0.8)
    assert table.schema.names[-1] == "y_deferred"
    assert table.equals(found.predict_table(NEW, level=0.8))
    inside = (table["y_lower"].to_numpy() <= NEW["y"]) & (
        NEW["y"] <= table["y_upper"].to_numpy()
    )
    # Binomial: 300 rows, calibrated on 300; six standard errors of the two.
    assert abs(inside.mean() - 0.8) < 6 * (0.8 * 0.2 / 150) ** 0.5
    assert 0 < np.array(table["y_deferred"]).mean() < 0.6
    assert any("DeferralPolicy" in line for line in found.lines())


def test_sets_of_classes(labels):
    numbers = labels.targets(FRAME)
    assert set(numbers.tolist()) == {0, 1}
    held_out = labels.predictive(FRAME)
    found = labels.attach(decisions.conformal(held_out, numbers, level=0.95))
    shown = set(found.predict_table(NEW)["label_set"].to_pylist())
    assert shown <= {"high", "low", "high|low", ""} and len(shown) > 1
    random = decisions.conformal(held_out, numbers, score=decisions.AdaptiveSets(1))
    served = labels.attach(random)
    whole = served.predict_table(NEW)["label_set"].to_pylist()
    single = [served.predict_table(NEW[i : i + 1])["label_set"] for i in range(5)]
    assert [one[0].as_py() for one in single] == whole[:5]
    with pytest.raises(InputTypeError, match="Got float"):
        labels.attach(0.5)


def test_targets_are_checked(model, labels):
    assert np.array_equal(model.targets(FRAME), FRAME["y"])
    with pytest.raises(DataError, match="row 2: the target 'y' is missing"):
        model.targets({"y": [1.0, None]})
    with pytest.raises(DataError, match="must have the target column"):
        model.targets(FRAME.drop(columns="y"))
    with pytest.raises(DataError, match=r"row 1.*'odd', which fit has not seen"):
        labels.targets({"label": ["odd", "high"]})


def test_it_is_saved_with_all_it_knows(model, labels, tmp_path):
    for own in (model, labels, linear_model()):
        caveat.save(own, tmp_path / "m")
        found = caveat.load(tmp_path / "m")
        assert found.schema == own.schema and repr(found) == repr(own)
        assert found.predict_table(NEW).equals(own.predict_table(NEW))


def test_what_was_chosen_is_told():
    model = FrameModel.fit(FRAME, target="y", drop=["label"], preset="fast")
    told = "\n".join(model.lines())
    for words in ("300 rows of the table", "candidate: linear", "not used: 'name'"):
        assert words in told
    assert "missing, with an indicator: gap (" in told
    assert model.predictive(pd.DataFrame(NEW[:3])).mean.dtype == torch.float64


def test_what_is_filled_in_is_said(model):
    """A column that is missing in all rows would else be answered like any other."""
    whole = (c for c in model.schema.columns if c.kind == "number" and not c.n_missing)
    name = next(whole).name
    with pytest.warns(CaveatWarning, match=rf"300 rows: {name!r} was missing, of"):
        model.predict_table(NEW.assign(**{name: np.nan}))
