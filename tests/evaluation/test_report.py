"""The report holds what its parts say, and reads well in every form."""

import io

import numpy as np
import pytest
import torch
from rich.console import Console

from caveat import decisions, evaluation
from caveat.decisions import conformal
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.evaluation import evaluate
from caveat.predictive import (
    CategoricalPredictive,
    GaussianPredictive,
    StudentPredictive,
)


def test_classification(classifier, labels):
    found = evaluate(classifier, labels, score="entropy")
    expected = {
        "accuracy": evaluation.accuracy(classifier, labels),
        "log-likelihood": evaluation.log_likelihood(classifier, labels),
        "Brier score": evaluation.brier(classifier, labels),
        "ECE": evaluation.ece(classifier, labels),
        "mean entropy": evaluation.sharpness(classifier),
        "AURC": evaluation.aurc(classifier, labels, score="entropy"),
        "AUROC of errors": evaluation.error_auroc(classifier, labels, score="entropy"),
    }
    assert {name: found[name] for name in found} == expected
    assert "ECE of right probabilities" in found.notes[0]


def test_regression(regression, outcomes):
    found = evaluate(regression, outcomes)
    assert list(found) == [
        "RMSE",
        "log-likelihood",
        "CRPS",
        "coverage of 50% intervals",
        "coverage of 90% intervals",
        "coverage of 95% intervals",
        "width of 90% intervals",
        "AURC of the absolute error",
    ]
    assert found["CRPS"] == evaluation.crps(regression, outcomes)
    assert found.metrics["coverage of 90% intervals"].best == "0.9"
    assert found.notes == ()


def test_student():
    predictive = StudentPredictive.of(
        torch.zeros(9), torch.ones(9), noise_scale=1.0, df=5.0
    )
    found = evaluate(predictive, torch.linspace(-1, 1, 9))
    assert found["coverage of 95% intervals"].value == 1.0


def test_several_outputs_have_no_order_of_rows():
    predictive = GaussianPredictive.from_draws(torch.randn(30, 9, 2), precision=1.0)
    found = evaluate(predictive, torch.zeros(9, 2))
    assert "AURC of the absolute error" not in found
    logits = torch.randn(3, 9, 2, 4)
    several = CategoricalPredictive.from_logits(logits)
    assert "AURC" not in evaluate(several, torch.zeros(9, 2, dtype=torch.int64))


def test_what_cannot_be_measured_is_said(classifier, regression, outcomes):
    perfect = evaluate(classifier, classifier.label)
    assert "AUROC of errors" not in perfect
    assert "0 of 400 rows are wrong" in perfect.notes[-1]
    few = conformal(regression[:15], outcomes[:15]).apply(regression)
    found = evaluate(few, outcomes)
    assert "coverage of 95% intervals" not in found
    assert "needs at least 19 calibration rows. Got 15" in found.notes[0]
    assert 0.8 < found["coverage of 90% intervals"].value <= 1.0


def test_as_text_and_markdown_and_rich(classifier, labels):
    found = evaluate(classifier, labels)
    value = f"{found['accuracy'].value:.3f}"
    lines = str(found).splitlines()
    assert lines[0] == "CategoricalPredictive: 400 rows"
    assert lines[2].split()[:2] == ["accuracy", value]
    markdown = found.to_markdown()
    assert f"| accuracy | {value} | 0.0" in markdown
    assert markdown.count("\n|") == 1 + len(found)
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(found)
    assert value in console.export_text()
    assert repr(found) == str(found)
    assert found._repr_markdown_().startswith("**CategoricalPredictive")


def test_it_is_a_value(classifier, labels):
    found = evaluate(classifier, labels)
    with pytest.raises(TypeError):
        found.metrics["accuracy"] = None
    with pytest.raises(ParameterError, match=r"no metric 'Accuracy' here.*'accuracy'"):
        found["Accuracy"]


def test_bad_observations(classifier):
    with pytest.raises(ShapeError, match="400"):
        evaluate(classifier, [0])


NAMES = ["cat", "dog", "eel"]


def test_labels_may_be_names():
    """In evaluate, defer and conformal alike."""
    generator = torch.Generator().manual_seed(0)
    predictive = CategoricalPredictive.from_logits(
        3 * torch.randn(1, 300, 3, generator=generator)
    )
    y = torch.multinomial(predictive.probs, 1, generator=generator).squeeze(1)
    for names in (
        [NAMES[k] for k in y],
        np.array(NAMES)[y],
        np.array(NAMES, object)[y],
    ):
        found = evaluate(predictive, names, classes=NAMES)
        assert str(found) == str(evaluate(predictive, y))
        target = decisions.ErrorRate(0.2)
        policy = decisions.defer(predictive, names, target=target, classes=NAMES)
        expected = decisions.defer(predictive, y, target=target)
        assert policy.threshold == expected.threshold
        sets = decisions.conformal(predictive, names, classes=np.array(NAMES))
        assert sets.guarantee == decisions.conformal(predictive, y).guarantee


def test_names_that_are_not_known_are_refused():
    predictive = CategoricalPredictive.from_logits(torch.zeros(2, 3, 3))
    with pytest.raises(ParameterError, match="Got \\['cow'\\]"):
        evaluate(predictive, ["cat", "cow", "dog"], classes=NAMES)
    with pytest.raises(InputTypeError, match=r"classes=\[...\]"):
        evaluate(predictive, ["cat", "dog", "dog"])
    with pytest.raises(ParameterError, match="3 different names"):
        evaluate(predictive, ["cat", "dog", "dog"], classes=["cat", "dog"])
    regression = GaussianPredictive.from_draws(torch.zeros(2, 3), precision=1.0)
    with pytest.raises(ParameterError, match="Leave it out"):
        evaluate(regression, [0.0, 1.0, 2.0], classes=NAMES)
