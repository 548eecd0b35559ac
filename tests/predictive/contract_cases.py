"""One small predictive of every kind, by name: what the contract is tested on."""

from collections.abc import Callable
from typing import Any

import torch

from caveat.decisions import AdaptiveSets, QuantileResidual, conformal
from caveat.predictive import (
    CategoricalAccumulator,
    CategoricalPredictive,
    GaussianPredictive,
    MomentPredictive,
    StudentMixturePredictive,
    StudentPredictive,
)
from tests.predictive.examples import random_draws, random_logits, without_draws

ROWS = 4
N_KNOWN = 39  # calibration rows of the conformal ones: levels up to 39/40


def mixture(*event: int, precision: Any = 4.0, rows: int = ROWS) -> GaussianPredictive:
    return GaussianPredictive.from_draws(
        random_draws(9, rows, *event), precision=precision
    )


def noise_head(rows: int = ROWS) -> GaussianPredictive:
    return mixture(precision=random_draws(9, rows, seed=3).exp(), rows=rows)


def integrated() -> GaussianPredictive:
    """Moments from elsewhere beside the draws, as ``regress`` makes them."""
    plain = mixture(1)
    mean, variance = plain.mean + 0.05, 1.1 * plain.epistemic_variance
    error = torch.full_like(mean, 0.01)
    return plain.with_moments(mean, variance, method="rao-blackwell", mean_error=error)


def short_type() -> GaussianPredictive:
    draws = random_draws(9, ROWS, 1, dtype=torch.float32)
    return GaussianPredictive.from_draws(draws, precision=4.0)


def moments(*event: int, **options: Any) -> MomentPredictive:
    mean = random_draws(ROWS, *event, seed=5)
    variance = random_draws(ROWS, *event, seed=6).exp()
    return MomentPredictive.of(mean, variance, method="propagated", **options)


def correlated_moments() -> MomentPredictive:
    root = random_draws(ROWS, 2, 2, seed=7)
    joint = root @ root.mT
    variance = joint.diagonal(dim1=1, dim2=2)
    mean = random_draws(ROWS, 2, seed=5)
    return MomentPredictive.of(
        mean, variance, method="exact", covariance=joint, precision=2.0
    )


def student(rows: int = ROWS) -> StudentPredictive:
    location, scale = random_draws(rows), random_draws(rows, seed=1).exp() + 0.4
    return StudentPredictive.of(location, scale, noise_scale=0.4, df=7.0)


def student_mixture(n_draws: int = 0) -> StudentMixturePredictive:
    return StudentMixturePredictive.of(
        random_draws(3, ROWS),
        random_draws(3, ROWS, seed=1).exp() + 0.4,
        random_draws(3, ROWS, seed=2).log_softmax(0),
        noise_scale=0.4,
        df=7.0,
        n_draws=n_draws,
    )


def conformal_mixture() -> Any:
    known = mixture(1, rows=N_KNOWN)
    y = 1.5 * random_draws(N_KNOWN, 1, seed=8)
    return conformal(known, y, level=0.9).apply(mixture(1))


def conformal_student() -> Any:
    y = 2.0 * random_draws(N_KNOWN, seed=8)
    found = conformal(student(N_KNOWN), y, level=0.8, score=QuantileResidual(0.5))
    return found.apply(student())


REGRESSIONS: dict[str, Callable[[], Any]] = {
    "mixture": lambda: mixture(1),
    "mixture without event": mixture,
    "mixture of two outputs": lambda: mixture(2, precision=torch.tensor([1.0, 9.0])),
    "mixture of float32": short_type,
    "noise head": noise_head,
    "moments beside draws": integrated,
    "point": lambda: GaussianPredictive.point(random_draws(ROWS, 1), precision=2.0),
    "point of two outputs": lambda: GaussianPredictive.point(
        random_draws(ROWS, 2), precision=torch.tensor([1.0, 9.0])
    ),
    "moments": lambda: moments(1, precision=2.0),
    "moments without noise": lambda: moments(1),
    "moments of two outputs": lambda: moments(2, precision=2.0),
    "correlated moments": correlated_moments,
    "student": student,
    "student mixture": student_mixture,
    "student mixture of draws": lambda: student_mixture(n_draws=3),
    "conformal mixture": conformal_mixture,
    "conformal student": conformal_student,
}

CONTINUOUS = [name for name in REGRESSIONS if not name.startswith("conformal")]
SEVERAL = [name for name in CONTINUOUS if "two" in name or "correlated" in name]
ONE_OUTPUT = sorted({*CONTINUOUS} - {*SEVERAL, "mixture of float32"})

NOT_KEPT: dict[str, Callable[[], Any]] = {
    "one output": lambda: without_draws(random_draws(9, ROWS, 1), 4.0),
    "two outputs": lambda: without_draws(random_draws(9, ROWS, 2), 4.0),
}


def categorical(*extra: int) -> CategoricalPredictive:
    return CategoricalPredictive.from_logits(random_logits(9, ROWS, *extra, 3))


def counted() -> CategoricalPredictive:
    gathered = CategoricalAccumulator(seed=0, keep_draws=False)
    gathered.add(random_logits(9, ROWS, 3))
    return gathered.result()


def masked_logits() -> torch.Tensor:
    logits = random_logits(9, ROWS, 3)
    logits[..., 1] = -torch.inf
    return logits


def conformal_sets(score: Any = None) -> Any:
    known = CategoricalPredictive.from_logits(random_logits(9, N_KNOWN, 3, seed=9))
    y = torch.arange(N_KNOWN) % 3
    return conformal(known, y, level=0.7, score=score).apply(categorical())


CLASSIFICATIONS: dict[str, Callable[[], Any]] = {
    "draws": categorical,
    "extra axis": lambda: categorical(2),
    "not kept": counted,
    "one draw": lambda: CategoricalPredictive.from_logits(random_logits(1, ROWS, 3)),
    "masked class": lambda: CategoricalPredictive.from_logits(masked_logits()),
    "float32": lambda: CategoricalPredictive.from_logits(
        random_logits(9, ROWS, 3, dtype=torch.float32)
    ),
    "point": lambda: CategoricalPredictive.point(random_logits(ROWS, 3)),
    "conformal": conformal_sets,
    "conformal, random": lambda: conformal_sets(AdaptiveSets(seed=1)),
}
