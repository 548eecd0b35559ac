"""Fitted estimators as subjects: networks in standard units, whose draws are pooled."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from caveat._random import signed
from caveat.errors import InputTypeError, ParameterError, UnsupportedModelError
from caveat.estimators import DropoutClassifier, DropoutRegressor
from caveat.estimators.tables.regression import (
    BEYOND_PLACE,
    NOISE_PLACE,
    TableRegression,
)
from caveat.exporting.drawing import SiteNoise
from caveat.exporting.pooling import PoolSummary
from caveat.exporting.pools import (
    BEYOND_PATH,
    NETS_PATH,
    NOISE_PATH,
    ClassPool,
    RegressionPool,
)
from caveat.exporting.subjects import ExportSubject, Question, answers_of
from caveat.exporting.summaries import ClassSummary, DrawSummary, RegressionSummary
from caveat.predictive import CategoricalPredictive, GaussianPredictive
from caveat.sampling import MCDropout
from caveat.sampling.engine import Sampler
from caveat.sampling.inputs import Batch
from caveat.sampling.outputs import find_output
from caveat.sampling.trees import Structure, unflatten
from caveat.training.ensembles import Ensemble
from caveat.training.objectives import split_head
from caveat.training.scaling import Scaling
from caveat.training.streams import mask_seed

_HEADS = """The pool of preset="best" cannot be exported: a share of its draws are
those of networks with a noise head, and how many depends on n_draws. Fit preset="auto"
(the default), or a recipe: {name}(hidden=(50,), n_members=5, ...)."""

_NO_NOISE = """{name} has networks without noise (drop_rate=0), so that draws are one
per network and nothing is sampled. Export networks_ with torch.onnx.export."""

_HEAD_INTERVAL = """Intervals of a noise head are not exported: every draw has a noise
of its own. Ask for "mean", "std" and the variances."""


class EnsembleNet(nn.Module):
    """Networks of an estimator from rows in their units to outputs in those of y.

    Returns (batch, networks, outputs), or (batch, networks, 2, outputs) with variances
    of the noise behind the means.
    """

    x_mean: Tensor
    x_std: Tensor
    y_mean: Tensor
    y_std: Tensor

    def __init__(self, ensemble: Ensemble, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(copy.deepcopy(n).double() for n in networks)
        self.has_head = ensemble.trained.spec.objective.has_head
        for name, value in _units(ensemble.scaling).items():
            self.register_buffer(name, value)

    def forward(self, x: Tensor) -> Tensor:
        """As ``Ensemble.draws`` does it, in the same types."""
        standard = (x.to(torch.float64) - self.x_mean) / self.x_std
        standard = standard.to(torch.float32).to(torch.float64)
        outputs = torch.stack([net(standard) for net in self.members], 1)
        if not self.has_head:
            return outputs * self.y_std + self.y_mean
        means, logs = split_head(outputs)
        noise = self.y_std.square() * torch.exp(-logs)
        return torch.stack([means * self.y_std + self.y_mean, noise], 2)


def _units(scaling: Scaling) -> dict[str, Tensor]:
    names = ("x_mean", "x_std", "y_mean", "y_std")
    return {n: torch.from_numpy(getattr(scaling, n).copy()) for n in names}


@dataclass(frozen=True)
class Fitted(ExportSubject):
    """A fitted recipe. Under seed 0 a graph gives the draws of the estimator."""

    estimator: DropoutRegressor | DropoutClassifier
    question: Question

    def __post_init__(self) -> None:
        check_is_fitted(self.estimator, "networks_")
        name, asked = type(self.estimator).__name__, self.question
        if asked.precision is not None or asked.output is not None:
            raise ParameterError(
                f"precision and output are for MCDropout: {name} knows them itself."
            )
        if asked.of_classes is not isinstance(self.estimator, DropoutClassifier):
            if asked.outputs != ("draws",):
                raise ParameterError(
                    f"{name} has no outputs {asked.outputs!r}; see caveat.export."
                )
        self._check(name)

    def _check(self, name: str) -> None:
        """Say what of these networks has no graph."""
        if not self._ensemble.trained.has_noise and not self._has_family:
            raise UnsupportedModelError(_NO_NOISE.format(name=name))
        wanted = set(self.question.outputs)
        if self._ensemble.trained.spec.objective.has_head and wanted & {
            "lower",
            "upper",
        }:
            raise UnsupportedModelError(_HEAD_INTERVAL)

    @property
    def _has_family(self) -> bool:
        return not isinstance(self._ensemble.trained.spec.noise, str)

    @property
    def _ensemble(self) -> Ensemble:
        assert self.estimator._ensemble is not None
        return self.estimator._ensemble

    @cached_property
    def sampler(self) -> Sampler:
        net = EnsembleNet(self._ensemble, self.estimator.networks_).eval()
        return MCDropout(net, seed=0)._sampler

    @property
    def seed(self) -> int:
        return 0

    @cached_property
    def _seeds(self) -> list[int]:
        """Those of each network's masks, as the estimator draws them."""
        own = mask_seed(self.estimator._seed, 0)
        count = range(len(self.estimator.networks_))
        return [self._ensemble.trained.mask_seed(i, own) for i in count]

    @property
    def equal_to(self) -> str:
        name = type(self.estimator).__name__
        return f"{name}.predictive(X) with n_draws=n_draws, under seed {self.seed}"

    def batch(self, example: Any) -> Batch:
        x = (
            example
            if isinstance(example, Tensor)
            else torch.from_numpy(
                np.ascontiguousarray(np.asarray(example, dtype=np.float64))
            )
        )
        width = self.estimator.n_features_in_
        if x.dim() != 2 or x.shape[1] != width:
            raise InputTypeError(
                f"example must be rows of {width} features. Got the shape "
                f"{tuple(x.shape)}."
            )
        return Batch.of((x,), {}, axis=0, model=self.sampler.model)

    def readdressed(self, sites: Sequence[SiteNoise]) -> tuple[SiteNoise, ...]:
        found = []
        for site in sites:
            _, number, name = site.spec.name.split(".", 2)
            found.append(site.addressed(name, self._seeds[int(number)]))
        return tuple(found)

    def pick(self, leaves: list[Any], structure: Structure) -> Tensor:
        tensor = find_output(unflatten(leaves, structure))
        assert tensor is not None
        return tensor

    def summary(self, batch: Batch) -> DrawSummary:
        asked, estimator = self.question, self.estimator
        if isinstance(estimator, DropoutClassifier):
            return ClassSummary(
                asked.outputs, torch.float64, "logits", 1, pools_members=True
            )
        head = self._ensemble.trained.spec.objective.has_head
        precision = None
        if not head:
            precision = torch.as_tensor(estimator.precision_, dtype=torch.float64)
        return RegressionSummary(
            asked.outputs,
            torch.float64,
            precision,
            asked.level,
            pools_members=True,
            has_head=head,
            noise_scale=1.0 / (estimator.precision_scale_ or 1.0),
            is_vector=estimator._is_vector,
        )

    def truth(self, batch: Batch, seed: int, n_draws: int) -> dict[str, Tensor]:
        (x,), _ = batch.arguments
        estimator, asked = self.estimator, self.question
        if seed == 0:
            rows = x.to(torch.float64).numpy()
            found = estimator._draws(rows, n_draws=n_draws)
            means, precisions = found.means, found.precisions
        else:
            means, precisions = self._drawn(x, seed, n_draws)
        if isinstance(estimator, DropoutClassifier):
            known: Any = CategoricalPredictive.averaged(means)
            return answers_of(known, asked)
        if precisions is not None:
            tau = precisions * (estimator.precision_scale_ or 1.0)
        else:
            tau = torch.as_tensor(estimator.precision_, dtype=torch.float64)
        known = GaussianPredictive.from_draws(means, precision=tau)
        return answers_of(known, replace(asked, precision=torch.ones(())))

    def _drawn(
        self, x: Tensor, seed: int, n_draws: int
    ) -> tuple[Tensor, Tensor | None]:
        """Draws by the networks one by one, under another seed."""
        ensemble, model = self._ensemble, self.sampler.model
        assert isinstance(model, EnsembleNet)
        standard = ensemble.scaling.inputs(x.to(torch.float64).numpy())
        outputs = torch.stack(
            [
                MCDropout(net, seed=signed(own + seed)).draws(
                    standard.to(torch.float64), n_draws=n_draws
                )
                for net, own in zip(model.members, self._seeds, strict=True)
            ],
            1,
        )
        found = ensemble._in_units_of_y(outputs.flatten(0, 1))
        means, precisions = found.means, found.precisions
        if getattr(self.estimator, "_is_vector", False):
            means = means.squeeze(-1)
            precisions = None if precisions is None else precisions.squeeze(-1)
        return means, precisions


@dataclass(frozen=True)
class Pooled(Fitted):
    """The pool of a preset: ``n_draws`` of a graph is for each of its networks."""

    def _check(self, name: str) -> None:
        if getattr(self._table, "heads", None) is not None:
            raise UnsupportedModelError(_HEADS.format(name=name))

    @property
    def _table(self) -> Any:
        return self.estimator._table

    @cached_property
    def sampler(self) -> Sampler:
        is_numbers = isinstance(self._table, TableRegression)
        pool = (RegressionPool if is_numbers else ClassPool)(self._table)
        return MCDropout(pool.eval(), seed=0)._sampler

    @property
    def _seed(self) -> int:
        """Of the pool, as the estimator draws."""
        return mask_seed(self.estimator._seed, 0)

    def readdressed(self, sites: Sequence[SiteNoise]) -> tuple[SiteNoise, ...]:
        alone = {NOISE_PATH: NOISE_PLACE, BEYOND_PATH: BEYOND_PLACE}
        found = []
        for site in sites:
            path, number = site.spec.name.rsplit("#", 1)
            kind, *place = path.split(".")
            if kind in alone:
                own, stream = mask_seed(self._seed, alone[kind]), f"#{number}"
            elif kind == NETS_PATH:
                part, _, net, layer = place
                nets = self._table.parts[int(part)]
                nets = getattr(nets, "nets", nets)
                own = nets.seeds(mask_seed(self._seed, int(part)))[int(net)]
                stream = f"{layer}#{number}"
            else:
                own, stream = mask_seed(self._seed, int(place[0])), f"#{number}"
            found.append(site.addressed(stream, own))
        return tuple(found)

    def summary(self, batch: Batch) -> DrawSummary:
        is_vector = bool(getattr(self.estimator, "_is_vector", False))
        asked = self.question
        return PoolSummary(
            asked.outputs, torch.float64, self._table, asked.level, is_vector
        )

    def truth(self, batch: Batch, seed: int, n_draws: int) -> dict[str, Tensor]:
        (x,), _ = batch.arguments
        rows = x.to(torch.float64).numpy()
        number = n_draws * self._table.turns
        found = self._table.draws(rows, n_draws=number, seed=self._seed, shift=seed)
        if not isinstance(self._table, TableRegression):
            logits = torch.from_numpy(found)
            return answers_of(CategoricalPredictive.averaged(logits), self.question)
        means, precisions = map(torch.from_numpy, found)
        if self.estimator._is_vector:
            means, precisions = means.squeeze(-1), precisions.squeeze(-1)
        known = GaussianPredictive.from_draws(means, precision=precisions)
        return answers_of(known, replace(self.question, precision=torch.ones(())))
