"""examples/bayesian_dropout_logistic.py runs, and what it says is so."""

import runpy
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "examples" / "bayesian_dropout_logistic.py"


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_quick_run(tmp_path, capsys):
    before = dict(mpl.rcParams)
    example = runpy.run_path(str(PATH))
    seen = {}
    ask = example["ask"]

    def remember(reading, *args):
        seen[reading.target] = ask(reading, *args)
        return seen[reading.target]

    example["main"].__globals__["ask"] = remember
    example["main"](["--quick", "--output", str(tmp_path / "new")])
    bayes, _, dropout = seen.values()
    assert bayes.correlation < -0.6
    assert abs(dropout.correlation) < 0.3
    sd = {
        name: a.weights.std(0).mean()
        for name, a in zip("bnd", seen.values(), strict=True)
    }
    assert sd["d"] < sd["b"] < sd["n"]
    width = [np.ptp(np.quantile(a.apart, [0.05, 0.95])) for a in (bayes, dropout)]
    assert width[1] < width[0]
    assert "Bayes cannot tell the predictors apart" in capsys.readouterr().out
    figure = tmp_path / "new" / "bayesian_dropout_logistic.png"
    assert figure.stat().st_size > 10_000
    assert dict(mpl.rcParams) == before


def test_figure_and_words(tmp_path, capsys):
    """The parts after sampling, on made-up answers."""
    example = runpy.run_path(str(PATH))
    generator = np.random.default_rng(0)

    def made_up(*args):
        square = np.full((len(example["SIDE"]),) * 2, 0.5)
        return example["Answer"](
            generator.normal(size=(50, 2)), square, generator.random(50)
        )

    example["main"].__globals__["ask"] = made_up
    example["main"](["--quick", "--output", str(tmp_path)])
    words = capsys.readouterr().out
    assert "Two predictors with correlation 0.95, 120 rows" in words
    assert words.count("correlation") >= 5
    assert (tmp_path / "bayesian_dropout_logistic.png").stat().st_size > 10_000
