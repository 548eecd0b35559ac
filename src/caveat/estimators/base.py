"""What dropout networks as scikit-learn estimators have in common."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from caveat import _validation as validation
from caveat.errors import DataError, InputTypeError, ParameterError
from caveat.estimators.draws import pooled_draws, seed_of, stream
from caveat.estimators.prior import Prior
from caveat.estimators.saving import (
    Stored,
    family_as_plain,
    noise_from_plain,
    read,
    write,
)
from caveat.estimators.trainer import Trainer
from caveat.noise import Noise
from caveat.predictive import Predictive
from caveat.training.ensembles import Candidate, Ensemble, Settings
from caveat.training.members import Member
from caveat.training.modules import untrained
from caveat.training.scaling import Scaling

Array = NDArray[np.float64]
Kind = TypeVar("Kind", bound=Settings)

_AT_ONCE = 2**23  # numbers drawn at once, if only a summary of them is wanted
_UNITS = ("x_mean", "x_sd", "y_mean", "y_sd")


class DropoutEstimator(BaseEstimator):  # type: ignore[misc]
    """Networks with dropout: settings, training, draws, and storage."""

    networks_: tuple[nn.Sequential, ...]
    scaling_: Scaling

    def __init__(  # noqa: PLR0913
        self,
        hidden: tuple[int, ...] = (50,),
        *,
        activation: str = "relu",
        noise: str | Noise = "bernoulli",
        drop_rate: float = 0.05,
        input_drop_rate: float = 0.0,
        lengthscale: float | None = 1e-2,
        weight_decay: float | None = None,
        n_members: int = 1,
        epochs: int = 400,
        batch_size: int = 32,
        learning_rate: float = 1e-2,
        schedule: str = "cosine",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 20,
        n_draws: int = 400,
        random_state: Any = None,
        progress: bool | None = False,
        n_threads: int | None = None,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.noise = noise
        self.drop_rate = drop_rate
        self.input_drop_rate = input_drop_rate
        self.lengthscale = lengthscale
        self.weight_decay = weight_decay
        self.n_members = n_members
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.n_draws = n_draws
        self.random_state = random_state
        self.progress = progress
        self.n_threads = n_threads

    @abstractmethod
    def predictive(self, X: Any) -> Predictive:
        """The predictive distribution of each row."""

    def save(self, path: Any) -> None:
        """Write the fitted estimator into a folder, without pickle.

        Parameters
        ----------
        path : str or Path
            A folder, made if need be: ``tensors.safetensors`` holds the weights and
            units, ``estimator.json`` the parameters and all else.

        Notes
        -----
        A ``random_state`` that is not an int is saved as None; predictions are the same
        all the same, as their seed is saved.
        """
        check_is_fitted(self, "networks_")
        parameters = self.get_params(deep=False)
        if isinstance(self.noise, Noise):
            parameters["noise"] = family_as_plain(self.noise)
        if not isinstance(self.random_state, int | np.integer):
            parameters["random_state"] = None
        state = {
            "n_features_in": self.n_features_in_,
            "feature_names_in": getattr(self, "feature_names_in_", None),
            "n_networks": len(self.networks_),
            "seed": self._seed,
            "lengthscale": self.lengthscale_,
            "weight_decays": self.weight_decays_,
            "bias_weight_decay": self.bias_weight_decay_,
            "n_steps": self.n_steps_,
        }
        stored = Stored(parameters, state | self._own_state(), self._tensors())
        write(path, type(self).__name__, stored)

    @classmethod
    def load(cls, path: Any) -> Self:
        """Read an estimator that :meth:`save` has written.

        Parameters
        ----------
        path : str or Path
            The folder.

        Returns
        -------
        DropoutRegressor or DropoutClassifier
            Fitted, with the same predictions.
        """
        stored = read(path, cls.__name__)
        try:
            return cls._from_stored(stored)
        except (KeyError, TypeError) as error:
            raise DataError(f"{path} is damaged or incomplete: {error!r}.") from error

    # ------------------------------------------------------------ for subclasses

    @abstractmethod
    def _settings(self, seed: int) -> Settings:
        """How the networks are trained, which depends on what is predicted."""

    @abstractmethod
    def _n_targets(self) -> int:
        """Columns of y."""

    @abstractmethod
    def _own_state(self) -> dict[str, Any]:
        """What a subclass has learned, for the JSON file."""

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None:
        """The way back from ``_own_state``."""

    def _make_settings(self, kind: type[Kind], seed: int, **own: Any) -> Kind:
        return kind(
            activation=_text("activation", self.activation),
            noise=_noise(self.noise),
            schedule=_text("schedule", self.schedule),
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            n_members=self.n_members,
            n_draws=self.n_draws,
            seed=seed,
            **own,
        )

    def _candidate(self) -> Candidate:
        return Candidate(
            drop_rate=_rate("drop_rate", self.drop_rate),
            input_drop_rate=_rate("input_drop_rate", self.input_drop_rate),
            hidden=_widths(self.hidden),
            epochs=validation.positive_int("epochs", self.epochs),
        )

    def _trainer(self, settings: Settings, precision: Any) -> Trainer:
        candidate = self._candidate()
        prior = Prior.of(
            self.lengthscale,
            self.weight_decay,
            drop_rate=candidate.drop_rates[-1],
            precision=precision,
        )
        return Trainer(
            type(self).__name__,
            settings,
            candidate,
            prior,
            self.validation_fraction if self.early_stopping else None,
            validation.positive_int("patience", self.patience),
            self.n_threads,
            self.progress,
        )

    def _keep(self, ensemble: Ensemble, lengthscale: float, seed: int) -> None:
        trained = ensemble.trained
        member = trained.members[0]
        self.networks_ = tuple(trained.network(i) for i in range(len(trained)))
        self.scaling_ = ensemble.scaling
        self.lengthscale_ = lengthscale
        is_decay = not isinstance(self.noise, Noise)
        penalties = member.l2_penalties if is_decay else ()
        self.weight_decays_ = tuple(2.0 * penalty for penalty in penalties)
        self.bias_weight_decay_ = 2.0 * member.bias_l2_penalty if is_decay else None
        self.n_steps_ = tuple(trained.stopped.tolist())
        self._seed = seed

    def _fresh_seed(self) -> int:
        return seed_of(self.random_state)

    def _matrix(self, X: Any) -> Array:
        """Checked rows to predict for."""
        check_is_fitted(self, "networks_")
        return dense(
            validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        )

    def _outputs(self, x: Array, *, n_draws: int, seed: int = 0) -> Tensor:
        """Draws of the networks in standard units, (draws, rows, outputs), float64."""
        return pooled_draws(
            self.networks_,
            self.scaling_.inputs(x),
            n_draws=n_draws,
            seed=stream(self._seed, seed),
        )

    def _by_parts(
        self, x: Array, ask: Callable[[Array], tuple[Tensor, ...]]
    ) -> list[Array]:
        """Answers for some rows at a time, so that few draws are held at once."""
        parts = [ask(rows) for rows in self._parts(x)]
        return [torch.cat(same).numpy() for same in zip(*parts, strict=True)]

    def _parts(self, x: Array) -> Iterator[Array]:
        n_outputs = len(self.networks_[0][-1].bias)  # type: ignore[arg-type]
        size = max(1, _AT_ONCE // (self.n_draws * len(self.networks_) * n_outputs))
        return (x[start : start + size] for start in range(0, len(x), size))

    # ------------------------------------------------------------ storage

    def _tensors(self) -> dict[str, Tensor]:
        found = {n: torch.from_numpy(getattr(self.scaling_, n)) for n in _UNITS}
        for number, net in enumerate(self.networks_):
            for name, tensor in net.state_dict().items():
                found[f"network.{number}.{name}"] = tensor
        return found

    @classmethod
    def _from_stored(cls, stored: Stored) -> Self:
        parameters = {n: _as_given(v) for n, v in stored.parameters.items()}
        parameters["noise"] = noise_from_plain(parameters["noise"])
        estimator = cls(**parameters)
        state, tensors = stored.state, stored.tensors
        estimator.n_features_in_ = state["n_features_in"]
        if state["feature_names_in"] is not None:
            names = np.array(state["feature_names_in"], dtype=object)
            estimator.feature_names_in_ = names
        estimator._seed = state["seed"]
        estimator.lengthscale_ = state["lengthscale"]
        estimator.weight_decays_ = tuple(state["weight_decays"])
        estimator.bias_weight_decay_ = state["bias_weight_decay"]
        estimator.n_steps_ = tuple(state["n_steps"])
        estimator.scaling_ = Scaling(*(tensors[n].numpy() for n in _UNITS))
        estimator._restore(state)
        numbers = range(state["n_networks"])
        estimator.networks_ = tuple(estimator._network(tensors, n) for n in numbers)
        return estimator

    def _network(self, tensors: dict[str, Tensor], number: int) -> nn.Sequential:
        settings, candidate = self._settings(self._seed), self._candidate()
        recipe = settings.recipe(
            self.n_features_in_, self._n_targets(), candidate.hidden
        )
        rates = candidate.drop_rates
        member = Member(f"network {number}", rates, tuple(0.0 for _ in rates))
        net = untrained(recipe, member)
        head = f"network.{number}."
        own = {
            n.removeprefix(head): t for n, t in tensors.items() if n.startswith(head)
        }
        try:
            net.load_state_dict(own)
        except RuntimeError as error:
            raise DataError(f"Network {number} does not fit: {error}") from error
        return net.eval()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def dense(x: Any) -> Array:
    """A checked matrix as an array; standard units leave nothing sparse."""
    return x.toarray() if sparse.issparse(x) else x


def _as_given(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputTypeError(f"{name} must be a name. Got {value!r}.")
    return value


def _noise(value: Any) -> str | Noise:
    if isinstance(value, Noise) or value in ("bernoulli", "gaussian"):
        return value
    raise ParameterError(
        "noise must be 'bernoulli', 'gaussian' or a family such as "
        f"caveat.noise.Concrete(). Got {value!r}."
    )


def _rate(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, float | int | np.number):
        raise InputTypeError(f"{name} must be a number in [0, 1). Got {value!r}.")
    return validation.drop_rate(float(value), where=name)


def _widths(hidden: Any) -> tuple[int, ...]:
    if not isinstance(hidden, tuple | list | np.ndarray):
        raise InputTypeError(
            f"hidden must be a tuple with the width of each hidden layer, such as "
            f"(50,). Got {hidden!r}."
        )
    return tuple(validation.positive_int("A width in hidden", w) for w in hidden)
