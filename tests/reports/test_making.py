"""The whole report: its parts, its numbers, its size, and what it refuses."""

import json
import re
import time
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from torch import nn

import caveat
from caveat.decisions import conformal
from caveat.errors import CaveatWarning, InputTypeError, ParameterError, ShapeError
from caveat.evaluation import accuracy, coverage, evaluate
from caveat.predictive import (
    CategoricalPredictive,
    GaussianPredictive,
    StudentPredictive,
)
from caveat.reports import report
from caveat.reports.deferred import Deferred
from caveat.reports.glossary import GLOSSARY
from caveat.reports.making import plain_text
from caveat.reports.markup import text
from caveat.reports.people import listed_rows
from caveat.reports.subject import subject_of
from tests.reports.cases import classification, normal_quantiles, regression, standard

VOID = {"meta", "link", "input", "br", "img", "hr"}
ALWAYS = "verdict calibration sharpness deferral intervals people draws making".split()
BAD = '<script>alert("x")</script>'


class Page(HTMLParser):
    """Tags that must close, ids, and what stands in the page."""

    def __init__(self, html):
        super().__init__()
        self.open, self.ids, self.tags, self.errors = [], [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.errors.append(tag)


def data_of(made):
    block = re.search(r'id="caveat-data">(.*?)</script>', made.html, re.DOTALL)
    return json.loads(block[1])


def check(made):
    """What holds for every report."""
    page = Page(made.html)
    assert page.open == [] and page.errors == []
    assert len(page.ids) == len(set(page.ids))
    links = [a["href"][1:] for tag, a in page.tags if tag == "a"]
    assert set(links) <= set(page.ids) and set(ALWAYS) <= set(page.ids)
    for tag, attrs in page.tags:
        if tag == "svg":
            assert attrs.get("role") == "img" or attrs.get("aria-hidden") == "true"
        assert not any(name.startswith("on") for name in attrs)
    assert len(made.verdict) == 3
    assert not re.search(r"\b(nan|inf|None)\b", plain_text(without_code(made.html)))
    assert len(made.html.encode()) < 300_000
    return page


def without_code(html):
    return re.sub(r"<(script|style).*?</\1>", "", html, flags=re.DOTALL)


def audit_of():
    net = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.1), nn.Linear(8, 1))
    return caveat.audit(net, torch.zeros(2, 3))


# What is there


def test_a_regression_report_has_all_its_parts():
    predictive, y, x = regression()
    made = caveat.report(
        predictive,
        y,
        x=x,
        ood=np.abs(x).sum(1),
        audit=audit_of(),
        title="Rents",
        about={"target": "rent", "unit": "€", "seed": 7, "command": "caveat report"},
    )
    page = check(made)
    assert {"features", "ood", "audit"} <= set(page.ids)
    words = plain_text(without_code(made.html))
    assert "rent (€)" in words and "caveat report" in words and "Not given" not in words
    assert caveat.__version__ in words and torch.__version__ in words
    assert made.title == "Rents" and "<title>Rents</title>" in made.html


def test_a_classification_report_has_all_its_parts():
    predictive, y, x = classification()
    foreign, _, _ = classification(seed=5)
    made = report(predictive, y, x=x, ood=foreign, audit=audit_of())
    page = check(made)
    assert {"features", "ood", "audit", "chart-reliability"} <= set(page.ids)
    assert "Not given: the seed (about=), the command (about=)." in made.html


def test_what_was_not_given_is_left_out_and_listed():
    predictive, y, _ = regression()
    made = report(predictive, y)
    page = check(made)
    assert not {"features", "ood", "audit"} & set(page.ids)
    assert "Not given: features (x=), out-of-distribution scores (ood=)" in made.html


def test_every_word_that_is_explained_is_used_somewhere():
    predictive, y, x = regression()
    labels, z, _ = classification()
    both = report(predictive, y, x=x, ood=np.abs(x).sum(1), audit=audit_of()).html
    both += report(labels, z, x=x, ood=labels[:50]).html
    both += report(standard(9), torch.ones(9)).html
    used = {name for name in GLOSSARY if f'title="{text(GLOSSARY[name])}"' in both}
    assert set(GLOSSARY) - used <= {"underconfident", "overconfident"}


# Its numbers


def test_numbers_of_a_regression_are_those_of_evaluation():
    predictive, y, x = regression(n_rows=400)
    made = report(predictive, y, x=x)
    table = evaluate(predictive, y)
    words = plain_text(without_code(made.html).replace("</td>", " "))
    for name in ("RMSE", "CRPS", "log-likelihood"):
        value, error = str(table[name]).replace("-", "−").split(" ± ")
        assert f"{name} {value} {error}" in words
    width = str(table["width of 90% intervals"]).split(" ± ")
    assert f"width {width[0]} {width[1]}" in words
    levels, observed = data_of(made)["coverage"]
    for level in (0.5, 0.9, 0.95):
        found = observed[levels.index(level)]
        assert found == coverage(predictive, y, level=level).value


def test_numbers_of_a_classification_are_those_of_evaluation():
    predictive, y, _ = classification(n_rows=400)
    made = report(predictive, y)
    table = evaluate(predictive, y)
    words = plain_text(without_code(made.html).replace("</td>", " "))
    for name in ("accuracy", "log-likelihood", "Brier score"):
        value, error = str(table[name]).replace("-", "−").split(" ± ")
        assert f"{name} {value} {error}" in words
    assert data_of(made)["accuracy"] == pytest.approx(accuracy(predictive, y).value)


def test_deferral_and_rows_are_those_of_the_scores():
    predictive, y, _ = regression(n_rows=400)
    made = report(predictive, y)
    subject = subject_of(predictive, y, classes=None, target="", unit="")
    found, curve = data_of(made)["deferral"], subject.curve
    place = found["share"].index(0.1)
    assert found["rows"][place] == 40
    assert found["risk"][place] == pytest.approx(Deferred.of(curve, 0.1).after)
    std = predictive.std.reshape(-1)
    listed = listed_rows(subject)
    unsure = listed.rows[[r == "least sure" for r in listed.reasons]]
    assert set(unsure) == set(std.argsort(descending=True)[: len(unsure)].tolist())
    assert data_of(made)["people"] == listed.rows.tolist() and len(listed.rows) == 50


def test_sure_rows_that_failed_are_among_those_for_a_person():
    mean = torch.zeros(300, 1, dtype=torch.float64)
    precision = torch.linspace(1.0, 2.0, 300, dtype=torch.float64)[:, None]
    y = normal_quantiles(300).clamp(-2, 2) / 2
    y[290] = 9.0  # the surest of all
    predictive = GaussianPredictive.point(mean, precision=precision)
    listed = listed_rows(subject_of(predictive, y, classes=None, target="", unit=""))
    assert dict(zip(listed.rows, listed.reasons, strict=True))[290] == "sure, but wrong"
    assert len(listed.rows) == 50


# What comes from data


def test_nothing_from_data_becomes_markup():
    predictive, y, x = classification(n_rows=60, n_classes=3)
    columns = {
        BAD: x[:, 0],
        "'\"><img src=x onerror=alert(1)>": [BAD] * 30 + ["b"] * 30,
    }
    names = [BAD, "</script><b>", "c&amp;"]
    made = report(
        predictive,
        np.array(names)[y],
        x=columns,
        title=BAD,
        classes=names,
        about={"target": BAD, "unit": BAD, BAD: BAD, "command": "</script>"},
    )
    page = check(made)
    assert made.html.count("<script") == 2 and made.html.count("</script>") == 2
    assert not any(tag in ("img", "b", "i") and a for tag, a in page.tags)
    assert [a.get("id") for tag, a in page.tags if tag == "script"] == [
        "caveat-data",
        None,
    ]
    assert made.title == BAD


def test_long_names_and_many_columns_stay_small():
    predictive, y, _ = regression(n_rows=120)
    generator = np.random.default_rng(0)
    x = {f"{k}{'&' * 400}": generator.random(120) for k in range(300)}
    x |= {f"w{k}": generator.choice(["&" * 500, "<" * 500], 120) for k in range(20)}
    about = {"&" * 900: "<" * 9000, "target": "&" * 900, "unit": "&" * 900}
    check(report(predictive, y, x=x, title="&" * 500, about=about))
    labels, z, _ = classification(n_rows=120)
    names = [f"{k}{'&' * 400}" for k in range(4)]
    check(report(labels, np.array(names)[z], x=x, classes=names))


# Awkward cases


@pytest.mark.parametrize("n_rows", [1, 2, 10])
def test_few_rows_are_said_to_be_few(n_rows):
    predictive, y, x = regression(n_rows=n_rows)
    made = report(predictive, y, x=x, ood=np.ones(n_rows))
    check(made)
    assert "all bands are wide" in made.html
    assert made.verdict[0].endswith("cannot show whether the model is calibrated.")
    labels, z, x = classification(n_rows=n_rows)
    made = report(labels, z, x=x, ood=np.ones(n_rows))
    check(made)
    assert "all bands are wide" in made.html


def test_a_class_that_was_not_observed_is_named():
    predictive, y, _ = classification()
    names = np.array(["ant", "bee", "cat", "<dog>"])
    there = y != 3
    made = report(predictive[there], names[y[there]], classes=names)
    check(made)
    assert "No row was observed to be &lt;dog&gt;" in made.html
    one = y == 1
    check(report(predictive[one], names[y[one]], classes=names))


def test_right_everywhere_wrong_everywhere_and_sure_of_all():
    predictive, _, _ = classification(n_classes=3)
    check(report(predictive, predictive.label))
    check(report(predictive, (predictive.label + 1) % 3))
    sure = CategoricalPredictive.point(1000.0 * torch.eye(3)[predictive.label])
    check(report(sure, predictive.label, x=np.zeros((300, 1))))
    check(report(standard(50), torch.zeros(50)))


def test_two_and_very_many_classes():
    for n_classes in (2, 500):
        predictive, y, x = classification(n_rows=200, n_draws=3, n_classes=n_classes)
        check(report(predictive, y, x=x[:, :2]))


def test_without_draws_the_page_says_what_intervals_are():
    net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 1))
    x = torch.randn(120, 2, generator=torch.Generator().manual_seed(0))
    mc = caveat.MCDropout(net, seed=0)
    y = np.zeros(120)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = report(mc.regress(x, n_draws=20, precision=1.0, keep_draws=False), y)
    check(made)
    assert made.html.count("the draws were not kept, so this is an approximation") == 1
    assert "log-likelihood is left out." in made.html
    made = report(mc.moments(x), y)
    check(made)
    assert "no observation noise" in made.html and "Nothing was sampled" in made.html


def test_other_warnings_are_passed_on(monkeypatch):
    predictive, y, _ = regression(n_rows=20)
    from caveat.reports import making

    def noisy(subject):
        warnings.warn("from below", RuntimeWarning, stacklevel=2)
        warnings.warn("a remark", CaveatWarning, stacklevel=2)
        return []

    monkeypatch.setattr(making, "verdict_of", noisy)
    with pytest.warns(RuntimeWarning, match="from below") as caught:
        made = report(predictive, y)
    assert len(caught) == 1 and "a remark" in made.html


def test_conformal_intervals_are_shown_at_the_levels_they_have():
    predictive, y, _ = regression(n_rows=200)
    few = conformal(predictive[:6], y[:6], level=0.5).apply(predictive)
    made = report(few, y)
    check(made)
    assert "85 % intervals" in made.verdict[0]
    check(report(conformal(predictive, y).apply(predictive), y))


def test_numbers_of_any_size():
    for scale in (1e-30, 1e30):
        predictive, y, _ = regression(n_rows=80)
        check(report(predictive.rescale(scale), scale * y))


def test_spreads_that_are_infinite_or_unknown():
    scale = torch.linspace(1.0, 2.0, 80, dtype=torch.float64)
    heavy = StudentPredictive.of(0 * scale, scale, noise_scale=0.5, df=1.5)
    made = report(heavy, normal_quantiles(80))
    assert "∞" in made.html and "no variance; it is given as infinite" in made.html
    check(made)
    nothing = StudentPredictive.of(0 * scale, scale, noise_scale=0.5, df=0.9)
    with (
        pytest.raises(ParameterError, match="must not be NaN"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        report(nothing, normal_quantiles(80))


@pytest.mark.parametrize("n_draws", [1, 2])
def test_few_draws(n_draws):
    predictive, y, _ = regression(n_rows=60, n_draws=n_draws)
    made = report(predictive, y)
    check(made)
    assert ("one of the" in made.html) == (n_draws == 1)


# What is refused


def test_what_is_refused_and_how():
    predictive, y, x = regression(n_rows=30)
    labels, z, _ = classification(n_rows=30)
    nan = np.where(np.arange(30) == 3, np.nan, y)
    for call, error, words in (
        (lambda: report(predictive, nan), ParameterError, "1 of 30 values are NaN"),
        (lambda: report(predictive, y[:9]), ShapeError, "y must have the shape"),
        (lambda: report(predictive[:0], []), ParameterError, "at least one row"),
        (lambda: report("p", y), InputTypeError, "RegressionPredictive. Got str"),
        (lambda: report(labels, ["a"] * 30), InputTypeError, "classes="),
        (lambda: report(labels, z, classes=list("ab")), ParameterError, "4 different"),
        (lambda: report(predictive, y, classes=["a"]), ParameterError, "Leave it out"),
        (lambda: report(predictive, y, x=x[:5]), ShapeError, "Got 5 rows"),
        (lambda: report(predictive, y, ood=nan), ParameterError, "ood must not be NaN"),
        (lambda: report(predictive, y, ood=labels), InputTypeError, "same side"),
        (lambda: report(predictive, y, audit="no"), InputTypeError, "caveat.audit"),
        (lambda: report(predictive, y, about="no"), InputTypeError, "a mapping"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_several_outputs_are_refused_with_a_remedy_that_works():
    draws = torch.randn(9, 40, 3, generator=torch.Generator().manual_seed(0))
    predictive = GaussianPredictive.from_draws(draws, precision=[1.0, 2.0, 3.0])
    y = torch.zeros(40, 3)
    with pytest.raises(ShapeError, match="make a report for each: for output k"):
        report(predictive, y)
    k = 1
    one = GaussianPredictive.from_draws(
        predictive.draws[..., k : k + 1], precision=predictive.precision[..., k : k + 1]
    )
    check(report(one, y[..., k]))
    labels = CategoricalPredictive.from_logits(draws.reshape(9, 20, 2, 3))
    with pytest.raises(ShapeError, match="count each label as a row"):
        report(labels, torch.zeros(20, 2, dtype=torch.long))
    flat = CategoricalPredictive.from_logits(labels.draws.flatten(1, -2))
    check(report(flat, torch.zeros(20, 2, dtype=torch.long).flatten()))


# A million rows


def test_a_million_rows_are_quick_and_small():
    n_rows = 1_000_000
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(10, n_rows, generator=generator)
    predictive = GaussianPredictive.from_draws(draws, precision=1.0)
    y = torch.randn(n_rows, generator=generator)
    x = {"a": y.numpy(), "b": draws[0].numpy()}
    started = time.process_time()  # other work on the machine does not count
    made = report(predictive, y, x=x)
    assert time.process_time() - started < 5.0
    check(made)
    assert "judged on 400,000 rows drawn at random" in made.html
    assert "width of intervals is the mean of 20,000 rows" in made.html
