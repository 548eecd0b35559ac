"""Tables that scikit-learn lets pass, and messages that it makes too long."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from caveat.errors import InputTypeError, ParameterError
from caveat.estimators import (
    BayesianDropoutClassifier,
    BayesianDropoutRegression,
    DropoutClassifier,
    DropoutRegressor,
    dropout_path,
)

X = np.random.default_rng(0).normal(size=(300, 3))
Y = X[:, 0]
ALL = [
    BayesianDropoutRegression(),
    BayesianDropoutClassifier(),
    DropoutRegressor(),
    DropoutClassifier(),
]


@pytest.mark.parametrize("model", ALL, ids=lambda m: type(m).__name__)
def test_no_message_is_longer_than_600_characters(model):
    holed = np.where(X > 2.0, np.nan, X)
    for table, words in ((holed, "contains NaN"), (X[:, 0], "Reshape your data")):
        with pytest.raises(ValueError, match=words) as caught:
            model.fit(table, Y > 0)
        assert len(str(caught.value)) <= 600


@pytest.mark.parametrize("model", ALL, ids=lambda m: type(m).__name__)
def test_missing_values_have_a_remedy(model):
    remedy = rf"make_pipeline\(SimpleImputer\(\), {type(model).__name__}\(\)\)"
    with pytest.raises(ParameterError, match=remedy):
        model.fit(np.where(X > 2.0, np.nan, X), Y > 0)


@pytest.mark.parametrize("model", ALL, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_numbers_whose_squares_overflow_are_refused(model, make):
    with pytest.raises(ParameterError, match="divide by their scale"):
        model.fit(make(X * 1e200), Y > 0)


def test_responses_whose_squares_overflow_are_refused():
    for model in (BayesianDropoutRegression(), DropoutRegressor()):
        with pytest.raises(ParameterError, match="numbers in y"):
            model.fit(X, Y * 1e200)
    with pytest.raises(ParameterError, match="numbers in X"):
        dropout_path(X * 1e200, Y, [0.1])


def test_settings_of_linear_models():
    with pytest.raises(InputTypeError, match="fit_intercept must be True or False"):
        BayesianDropoutRegression(fit_intercept="no").fit(X, Y)
    with pytest.raises(InputTypeError, match="drop_rate must be a number"):
        BayesianDropoutRegression("a").fit(X, Y)


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (["a", "b"] * 150, "'c' (?s:.*)FrameModel.fit"),
        (pd.Categorical(["a", "b"] * 150), "'c' .category(?s:.*)FrameModel.fit"),
        (
            pd.date_range("2024-01-01", periods=300),
            "'c' .datetime(?s:.*)FrameModel.fit",
        ),
        (pd.to_timedelta(np.arange(300), "h"), "'c' .timedelta(?s:.*)FrameModel.fit"),
    ],
)
def test_a_column_that_holds_no_numbers_is_named(column, told):
    table = pd.DataFrame(X, columns=list("abd")).assign(c=column)
    with pytest.raises(ParameterError, match=told):
        DropoutRegressor().fit(table, Y)


def test_responses_whose_spread_is_lost_are_refused():
    for model in (BayesianDropoutRegression(), DropoutRegressor()):
        with pytest.raises(ParameterError, match="y must differ by at least 1e-150"):
            model.fit(X, Y * 1e-200)


@pytest.mark.parametrize("model", [BayesianDropoutRegression(), DropoutRegressor()])
def test_dates_are_no_numbers_to_predict(model):
    days = pd.Series(pd.date_range("2024-01-01", periods=300))
    for y in (days, days.to_numpy(), days - days[0]):
        with pytest.raises(ParameterError, match="y must hold numbers, and holds dat"):
            model.fit(X, y)


@pytest.mark.parametrize("model", [BayesianDropoutClassifier(), DropoutClassifier()])
@pytest.mark.parametrize("dtype", [object, "string"])
def test_a_label_that_is_missing_is_named(model, dtype):
    y = pd.Series(["a", "b", None] * 100, dtype=dtype)
    for gaps in (y, y.fillna(np.nan).to_numpy(dtype=object)):
        with pytest.raises(ParameterError, match="in row 2, counted from 0"):
            model.fit(X, gaps)


def test_a_single_class_is_named_as_it_was_given():
    with pytest.raises(ParameterError, match=r"Got only one class, 1\.0\."):
        DropoutClassifier().fit(X, np.ones(300))
