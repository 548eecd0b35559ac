"""What dropout networks as scikit-learn estimators have in common."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_is_fitted
from torch import Tensor, nn

from caveat import _validation as validation
from caveat.errors import ParameterError, ShapeError
from caveat.estimators.checking import validate_data
from caveat.estimators.presets import AUTO, DEFAULTS, given_arguments
from caveat.estimators.prior import Prior, checked_prior
from caveat.estimators.seeds import seed_of
from caveat.estimators.tables.classification import TableClassification
from caveat.estimators.tables.records import Candidate, curve_of, told
from caveat.estimators.tables.regression import TableRegression, networks_of
from caveat.estimators.tables.settling import settled
from caveat.estimators.trainer import Trainer
from caveat.noise import Noise
from caveat.predictive import Predictive
from caveat.predictive.strata import Stratification
from caveat.training.ensembles import Draws, Ensemble
from caveat.training.families import SeparateNetworks
from caveat.training.members import Architecture, Member
from caveat.training.networks import flat_parameters, untrained
from caveat.training.objectives import Likelihood
from caveat.training.scaling import Scaling
from caveat.training.schedules import Schedule
from caveat.training.spec import NetworkSpec
from caveat.training.stacked import StackedNetworks
from caveat.training.streams import mask_seed
from caveat.training.trained import Trained

Array = NDArray[np.float64]
Table = TableRegression | TableClassification

_AT_ONCE = 2**23  # numbers drawn at once, if only a summary of them is wanted


class DropoutEstimator(BaseEstimator):  # type: ignore[misc]
    """Networks with dropout: settings, training, draws, and storage."""

    networks_: tuple[nn.Sequential, ...]
    scaling_: Scaling
    lengthscale_: float | None
    weight_decays_: tuple[float, ...]
    bias_weight_decay_: float | None
    n_steps_: tuple[int, ...]
    loss_curve_: list[float]
    candidates_: tuple[Candidate, ...]
    chosen_: str
    _ensemble: Ensemble | None
    _table: Table | None

    def __init__(  # noqa: PLR0913
        self,
        hidden: tuple[int, ...] | None = None,
        *,
        preset: str | None = AUTO,
        activation: str | None = None,
        noise: str | Noise | None = None,
        drop_rate: float | None = None,
        input_drop_rate: float | None = None,
        prior: Prior | None = None,
        n_members: int | None = None,
        schedule: Schedule | None = None,
        n_draws: int = 400,
        random_state: Any = None,
        progress: bool | None = False,
    ) -> None:
        self.preset = preset
        self.hidden = hidden
        self.activation = activation
        self.noise = noise
        self.drop_rate = drop_rate
        self.input_drop_rate = input_drop_rate
        self.prior = prior
        self.n_members = n_members
        self.schedule = schedule
        self.n_draws = n_draws
        self.random_state = random_state
        self.progress = progress

    @abstractmethod
    def predictive(self, X: Any) -> Predictive:
        """The predictive distribution of each row."""

    # ------------------------------------------------------------ for subclasses

    @abstractmethod
    def _objective(self) -> Likelihood:
        """The loss, which depends on what is predicted."""

    @abstractmethod
    def _n_targets(self) -> int:
        """Columns of y."""

    @abstractmethod
    def _own_state(self) -> dict[str, Any]:
        """What a subclass has learned, by name."""

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None:
        """The way back from ``_own_state``."""

    @abstractmethod
    def _table_draws(self, x: Array, n_draws: int, seed: int) -> Draws:
        """Draws of a pool, as those of networks."""

    def _spec(self) -> NetworkSpec:
        """The parameters, checked, in the words of ``caveat.training``."""
        recipe = self._recipe()
        return NetworkSpec(
            **{name: recipe[name] for name in DEFAULTS},
            objective=self._objective(),
            schedule=recipe["schedule"] or Schedule(),
            n_draws=self.n_draws,
        )

    def _recipe(self) -> dict[str, Any]:
        """The arguments of the networks: those given, and defaults for the others."""
        given = given_arguments(self)
        return DEFAULTS | {"schedule": None, "prior": None, "precision": None} | given

    def _trainer(
        self, precision: Any, seed: int, weight: Array | None = None
    ) -> Trainer:
        prior = checked_prior(self.prior, precision)
        own = None if weight is None or (weight == 1.0).all() else weight
        return Trainer(
            type(self).__name__, self._spec(), prior, seed, self.progress, own
        )

    def _keep_table(self, table: Table, candidates: list[Candidate], seed: int) -> None:
        """A pool instead of networks that share one recipe."""
        table = settled(table)
        self._table, self._seed = table, seed
        self._ensemble = None
        self.__dict__.pop("scaling_", None)  # the networks of a pool have their own
        self.candidates_ = tuple(sorted(candidates, key=lambda c: -c.weight))
        self.chosen_ = told(self.candidates_)
        self.networks_ = tuple(net for part in table.parts for net in networks_of(part))
        curves = [c.loss_curve for c in self.candidates_ if c.loss_curve]
        self.loss_curve_ = list(curves[0]) if curves else []
        self.lengthscale_ = self.bias_weight_decay_ = None
        self.weight_decays_, self.n_steps_ = (), ()

    def _keep(self, ensemble: Ensemble, seed: int) -> None:
        trained = ensemble.trained
        self._table = None
        self.candidates_, self.chosen_ = (), ""
        member = trained.members[0]
        self._ensemble = ensemble
        self.networks_ = tuple(trained.network(i) for i in range(len(trained)))
        self.scaling_ = ensemble.scaling
        self.lengthscale_ = member.spec.lengthscale
        is_decay = not isinstance(self.noise, Noise)
        penalties = member.l2_penalties if is_decay else ()
        self.weight_decays_ = tuple(2.0 * penalty for penalty in penalties)
        self.bias_weight_decay_ = 2.0 * member.bias_l2_penalty if is_decay else None
        self.n_steps_ = tuple(trained.stopped.tolist())
        self.loss_curve_ = list(curve_of(trained.losses))
        self._seed = seed

    def _fresh_seed(self) -> int:
        return seed_of(self.random_state)

    def _matrix(self, X: Any) -> Array:
        """Checked rows to predict for."""
        check_is_fitted(self, "networks_")
        rows = validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, reset=False
        )
        return dense(rows)

    def _draws(self, x: Array, *, n_draws: int, seed: int = 0) -> Draws:
        """In the units of y and in float64; networks without noise have one each."""
        if self._table is not None:
            return self._table_draws(x, n_draws, mask_seed(self._seed, seed))
        assert self._ensemble is not None
        return self._ensemble.draws(
            x,
            n_draws=n_draws if self._ensemble.trained.has_noise else 1,
            seed=mask_seed(self._seed, seed),
            dtype=torch.float64,
        )

    def _design(self) -> Stratification | None:
        return None if self._ensemble is None else self._ensemble.trained.design

    def _check_draws(self) -> None:
        validation.several("n_draws", self.n_draws)

    def _each(self, number: int) -> int:
        """Draws to make, so that ``number`` observations can be taken from them."""
        if self._table is not None:
            return max(number, self.n_draws)  # a pool shares them out among its parts
        return -(-number // len(self.networks_))

    def _turns(self, number: int, made: int, seed: int) -> Tensor:
        """Which of the draws made to take; networks without noise have few."""
        if self._table is None:
            return torch.arange(number) % made
        return torch.from_numpy(np.random.default_rng(seed).permutation(made)[:number])

    def _by_parts(
        self, x: Array, ask: Callable[[Array], tuple[Tensor, ...]]
    ) -> list[Array]:
        """Answers for some rows at a time, so that few draws are held at once."""
        parts = [ask(rows) for rows in self._parts(x)]
        return [torch.cat(same).numpy() for same in zip(*parts, strict=True)]

    def _parts(self, x: Array) -> Iterator[Array]:
        n_outputs = self._objective().n_outputs(self._n_targets())
        count = len(self.networks_) if self._table is None else 2
        size = max(1, _AT_ONCE // (self.n_draws * count * n_outputs))
        return (x[start : start + size] for start in range(0, len(x), size))

    # ------------------------------------------------------------ storage

    def _saved(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Parameters and state, of which ``caveat.save`` writes a file.

        A ``random_state`` that is not an int is saved as None; predictions are the same
        all the same, as their seed is saved.
        """
        check_is_fitted(self, "networks_")
        parameters = self.get_params(deep=False)
        if not isinstance(self.random_state, int | np.integer):
            parameters["random_state"] = None
        state = {
            "n_features_in": self.n_features_in_,
            "feature_names_in": getattr(self, "feature_names_in_", None),
            "seed": self._seed,
            "own": self._own_state(),
        }
        if self._table is not None:
            pool = {"table": self._table, "candidates": list(self.candidates_)}
            return parameters, state | pool
        return parameters, state | {
            "scaling": self.scaling_,
            "networks": [dict(net.state_dict()) for net in self.networks_],
            "lengthscale": self.lengthscale_,
            "weight_decays": self.weight_decays_,
            "bias_weight_decay": self.bias_weight_decay_,
            "n_steps": self.n_steps_,
            "loss_curve": self.loss_curve_,
        }

    @classmethod
    def _from_saved(cls, parameters: dict[str, Any], state: dict[str, Any]) -> Self:
        """The way back from ``_saved``."""
        estimator = cls(**parameters)
        estimator.n_features_in_ = state["n_features_in"]
        if state["feature_names_in"] is not None:
            estimator.feature_names_in_ = state["feature_names_in"]
        estimator._seed = state["seed"]
        estimator._restore(state["own"])
        if "table" in state:
            own = list(state["candidates"])
            estimator._keep_table(state["table"], own, state["seed"])
            return estimator
        estimator._table = None
        estimator.candidates_, estimator.chosen_ = (), ""
        estimator.lengthscale_ = state["lengthscale"]
        estimator.weight_decays_ = state["weight_decays"]
        estimator.bias_weight_decay_ = state["bias_weight_decay"]
        estimator.n_steps_ = state["n_steps"]
        estimator.loss_curve_ = state["loss_curve"]
        estimator.scaling_ = state["scaling"]
        nets = (estimator._network(own) for own in state["networks"])
        estimator.networks_ = tuple(nets)
        estimator._ensemble = Ensemble(estimator._trained(), estimator.scaling_)
        return estimator

    def _network(self, weights: dict[str, Tensor]) -> nn.Sequential:
        shape = self._architecture()
        if shape.n_parameters > sum(w.numel() for w in weights.values()):
            raise ShapeError(  # before there is memory for it
                f"a network of {shape.n_parameters} weights must be saved with all of "
                f"them. Got {sum(w.numel() for w in weights.values())}."
            )
        net = untrained(self._spec(), shape, 0)
        net.load_state_dict(weights)
        return net.eval()

    def _architecture(self) -> Architecture:
        return Architecture.of(self._spec(), self.n_features_in_, self._n_targets())

    def _trained(self) -> Trained:
        """The fleet that ``networks_`` were, for their draws."""
        spec, shape, nets = self._spec(), self._architecture(), self.networks_
        members = tuple(
            Member(f"network {number}", spec, (0.0,) * len(spec.drop_rates))
            for number in range(len(nets))
        )
        steps = torch.tensor(self.n_steps_)
        if isinstance(spec.noise, Noise):
            return SeparateNetworks(members, (), steps, shape, nets)
        flat = torch.stack([flat_parameters(net) for net in nets])
        return StackedNetworks(members, (), steps, shape, flat)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def dense(x: Any) -> Array:
    """A checked matrix as an array; standard units leave nothing sparse."""
    return x.toarray() if sparse.issparse(x) else x


def regression_rows(
    estimator: BaseEstimator, X: Any, y: Any, *, least: int
) -> tuple[Array, Array]:
    """Checked rows and targets of a regression, y as it was given.

    Parameters
    ----------
    estimator : BaseEstimator
        Whose fit it is.
    X : array, sparse matrix or data frame, shape (rows, features)
        What the user gave.
    y : array, shape (rows,) or (rows, outputs)
        What the user gave.
    least : int
        Rows that there must be.

    Returns
    -------
    X, y : array
    """
    matrix, targets = validate_data(
        estimator,
        X,
        y,
        accept_sparse="csr",
        dtype=np.float64,
        multi_output=True,
        y_numeric=True,
        ensure_min_samples=least,
    )
    return dense(matrix), np.asarray(targets, dtype=np.float64)


def row_weights(sample_weight: Any, x: Array) -> Array:
    """Weights of rows with a mean of 1; without any, ones.

    Parameters
    ----------
    sample_weight : array-like, shape (rows,), number, or None
        What the user gave: at least 0, and not all 0.
    x : array, shape (rows, columns)
        The rows.

    Returns
    -------
    array, shape (rows,)
    """
    if sample_weight is None:
        return np.ones(len(x))
    found = _check_sample_weight(
        sample_weight, x, dtype=np.float64, ensure_non_negative=True
    )
    return np.asarray(found / found.mean())


def counted_rows(
    sample_weight: Any, x: Array, y: Array, *, least: int
) -> tuple[Array, Array, Array]:
    """The rows that count, and their weights: one of weight 0 is as if it were absent.

    Were it kept, it would still be a row wherever rows are counted.

    Parameters
    ----------
    sample_weight : array-like, shape (rows,), number, or None
        As for :func:`row_weights`.
    x, y : array, shape (rows, ...)
        The rows and their targets or labels.
    least : int
        Rows that there must be.

    Returns
    -------
    x, y, weight : array
        The weights have a mean of 1.
    """
    weight = row_weights(sample_weight, x)
    counted = weight > 0.0
    if counted.all():
        return x, y, weight
    if counted.sum() < least:
        raise ParameterError(
            f"sample_weight must be above 0 for at least {least} rows. Got "
            f"{counted.sum()} of {len(x)}."
        )
    own = weight[counted]
    return x[counted], y[counted], own / own.mean()
