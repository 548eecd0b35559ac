"""Two predictors that say nearly the same: Bayes, naive dropout, Bayesian dropout
===============================================================================

A statistician's first ten minutes with `caveat.maxent`. The model is an ordinary
NumPyro logistic regression with one extra line, and the line alone changes nothing. The
same model is then read in three ways and sampled by NUTS.

::

    python examples/bayesian_dropout_logistic.py            # figure in outputs/
    python examples/bayesian_dropout_logistic.py --quick    # fewer draws
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from numpyro.infer import MCMC, NUTS

from caveat import maxent

Array = NDArray[Any]

N_ROWS, RATE, PRIOR_SD = 120, 0.5, 3.0
SIDE = np.linspace(-3.2, 3.2, 61)
APART = np.array([[2.0, -2.0]])  # where the predictors disagree
COLOURS = ("#0072B2", "#E69F00", "#009E73")


def model(x: Array, y: Array | None = None) -> None:
    """Logistic regression in which weights are dropped; the intercept is not."""
    intercept = numpyro.sample("intercept", dist.Normal(0.0, PRIOR_SD))
    w = numpyro.sample("w", dist.Normal(0.0, PRIOR_SD).expand([2]).to_event(1))
    w = maxent.dropout("w", w, RATE)  # the extra line
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Bernoulli(logits=intercept + x @ w), obs=y)


class Reading(NamedTuple):
    """One way to read the model: what is sampled, and what predicts."""

    target: Callable[..., Any]
    predictor: Callable[..., Any]


READINGS = {
    "Bayes": Reading(model, model),
    "naive dropout": Reading(maxent.naive(model), maxent.weight_averaged(model)),
    "Bayesian dropout": Reading(maxent.posterior(model), maxent.weight_averaged(model)),
}


class Answer(NamedTuple):
    """What one reading says.

    Attributes
    ----------
    weights : array, shape (draws, 2)
        Of the posterior.
    probability : array, shape (rows, columns)
        Of a 1, on the square of predictors.
    apart : array, shape (draws,)
        Probability of a 1 where the predictors disagree.
    """

    weights: Array
    probability: Array
    apart: Array

    @property
    def correlation(self) -> float:
        """Of the two weights in the posterior."""
        return float(np.corrcoef(self.weights.T)[0, 1])


def main(argv: Sequence[str] | None = None) -> None:
    """Sample, say what is seen, and write the figure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    parser.add_argument("--output", type=Path, default=Path("outputs"))
    options = parser.parse_args(argv)
    x, y = make_data()
    n_draws = 500 if options.quick else 4000
    answers = {name: ask(r, x, y, n_draws) for name, r in READINGS.items()}
    print(report(answers, x))
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "bayesian_dropout_logistic.png"
    draw(answers, x, y).savefig(path, dpi=110)
    print(f"\n{path}")


def make_data(seed: int = 4) -> tuple[Array, Array]:
    """Two predictors that are nearly the same and matter equally."""
    generator = np.random.default_rng(seed)
    common, own = generator.normal(size=(N_ROWS, 1)), generator.normal(size=(N_ROWS, 2))
    x = np.sqrt(0.95) * common + np.sqrt(0.05) * own
    chance = 1 / (1 + np.exp(-x.sum(1)))
    return x, (generator.random(N_ROWS) < chance).astype(int)


def ask(reading: Reading, x: Array, y: Array, n_draws: int) -> Answer:
    """Run NUTS as ever, and predict from its draws."""
    mcmc = MCMC(
        NUTS(reading.target), num_warmup=500, num_samples=n_draws, progress_bar=False
    )
    mcmc.run(jax.random.PRNGKey(0), x, y)
    samples = mcmc.get_samples()
    some = {name: values[:: n_draws // 500] for name, values in samples.items()}
    square = np.stack(np.meshgrid(SIDE, SIDE), -1).reshape(-1, 2)
    found = maxent.predictive(reading.predictor, some, np.vstack([square, APART]))
    return Answer(
        np.asarray(samples["w"]),
        found.probs[:-1, 1].reshape(len(SIDE), -1).numpy(),
        torch.softmax(found.draws[:, -1], -1)[:, 1].numpy(),
    )


def report(answers: dict[str, Answer], x: Array) -> str:
    """The numbers, and what they mean in plain sentences."""
    bayes, naive, dropout = answers.values()
    lines = [
        f"Two predictors with correlation {np.corrcoef(x.T)[0, 1]:.2f}, {len(x)} rows; "
        f"each weight is dropped with probability {RATE}."
    ]
    for name, answer in answers.items():
        each = zip(answer.weights.mean(0), answer.weights.std(0), strict=True)
        low, high = np.quantile(answer.apart, [0.05, 0.95])
        lines.append(
            f"{name:>17}: weights {' and '.join(f'{m:.2f} ± {s:.2f}' for m, s in each)}"
            f", correlation {answer.correlation:+.2f}; at (2, -2) P(1) is {low:.2f} to "
            f"{high:.2f}"
        )
    return "\n".join([*lines, "", _meaning(bayes, naive, dropout)])


def _meaning(bayes: Answer, naive: Answer, dropout: Answer) -> str:
    sds = [answer.weights.std(0).mean() for answer in (bayes, naive, dropout)]
    return f"""\
Bayes cannot tell the predictors apart: what one weight gains the other loses
(correlation {bayes.correlation:+.2f}), and only their sum is well known.
Bayesian dropout asks each predictor to explain the labels when the other is gone, so
that neither leans on the other: the correlation shrinks to {dropout.correlation:+.2f}
and the sd of a weight from {sds[0]:.2f} to {sds[2]:.2f}.
Naive dropout lets every row choose the mask that explains it best. Rows that one
predictor gets wrong are put down to its being dropped, so large weights cost little:
the sd of a weight grows to {sds[1]:.2f}.
Where the predictors disagree no data speak. Bayes follows whichever weight happens to
be larger, and its draws disagree most; under Bayesian dropout both predictors have
learnt to stand alone, and they cancel."""


def draw(answers: dict[str, Answer], x: Array, y: Array) -> Figure:
    """Weights above; the probability of a 1 and the data below."""
    figure = Figure(figsize=(11, 7), layout="constrained")
    axes = figure.subplots(2, 3)
    for column, (name, answer), colour in zip(
        axes.T, answers.items(), COLOURS, strict=True
    ):
        _draw_weights(column[0], answer, colour)
        column[0].set_title(f"{name}\ncorrelation {answer.correlation:+.2f}")
        shades = _draw_probability(column[1], answer)
        for label, face in ((0, "white"), (1, "black")):
            column[1].scatter(*x[y == label].T, c=face, edgecolors="black", s=22)
    axes[0, 0].set_ylabel("$w_2$")
    axes[1, 0].set_ylabel("$x_2$")
    figure.colorbar(shades, ax=axes[1], label="probability of a 1", shrink=0.8)
    return figure


def _draw_weights(ax: Axes, answer: Answer, colour: str) -> None:
    ax.scatter(*answer.weights.T, s=3, alpha=0.3, color=colour, rasterized=True)
    ax.axhline(0, color="0.8", zorder=0, lw=1)
    ax.axvline(0, color="0.8", zorder=0, lw=1)
    ax.set(xlim=(-3, 10), ylim=(-3, 10), xlabel="$w_1$", aspect="equal")


def _draw_probability(ax: Axes, answer: Answer) -> Any:
    ax.plot(*APART[0], marker="x", color="black", markersize=9, mew=2)
    ax.set(xlabel="$x_1$", aspect="equal")
    levels = np.linspace(0, 1, 11)
    return ax.contourf(SIDE, SIDE, answer.probability, levels=levels, cmap="RdBu_r")


if __name__ == "__main__":
    main()
