"""FrameModel: an estimator that takes tables with columns as they come."""

import warnings
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caveat.decisions import (
    ConformalIntervals,
    ConformalSets,
    DeferralPolicy,
)
from caveat.errors import (
    CaveatError,
    CaveatWarning,
    DataError,
    InputTypeError,
    ParameterError,
)
from caveat.estimators import (
    BayesianDropoutClassifier,
    DropoutClassifier,
    DropoutRegressor,
    DropoutSearchCV,
)
from caveat.evaluation import PrecisionCalibration, TemperatureCalibration
from caveat.frames.answers import Answers, Asking, answer_columns, answer_types
from caveat.frames.encoding import Encoder
from caveat.frames.leaking import warn_of_leaks
from caveat.frames.learning import (
    Origin,
    Wishes,
    learn_columns,
    learn_target,
    unit_of,
)
from caveat.frames.reading import TableSource, as_source
from caveat.frames.schema import Schema
from caveat.frames.values import MISSING, Spelling
from caveat.predictive import Predictive
from caveat.training.streams import mask_seed

Array = NDArray[np.float64]
Calibration = PrecisionCalibration | TemperatureCalibration
Conformal = ConformalIntervals | ConformalSets

ROWS = 256  # computed at a time, always so many: sums round by the shape of a batch


@final
@dataclass(frozen=True, eq=False)
class FrameModel:
    """A fitted estimator with the columns it was fitted on, and policies on top.

    Made by :meth:`fit`, or from a schema and an estimator fitted on its features. What
    a row is answered depends on that row alone, not on its neighbours. Rows are always
    computed 256 at a time, so that a table always gives the same bits, whatever format
    it comes in, and so does a part of it that starts at a multiple of 256; elsewhere in
    a block products of matrices may round otherwise, in the last digits of a float64.

    Attributes
    ----------
    schema : Schema
        What was learned of the columns.
    estimator : estimator
        Fitted on the features of the schema.
    calibration : PrecisionCalibration, TemperatureCalibration or None
        Applied first.
    conformal : ConformalIntervals, ConformalSets or None
        Then this.
    deferral : DeferralPolicy or None
        Decides which rows are handed on.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> size, kind = rng.normal(size=80), rng.choice(["a", "b"], 80)
    >>> y = size + (kind == "a") + 0.1 * rng.normal(size=80)
    >>> table = {"size": size, "kind": kind, "y": y}
    >>> model = FrameModel.fit(table, target="y", preset="fast")
    >>> model.schema.features
    ('size', 'kind=b', 'kind=a')
    >>> model.predict_table([{"kind": "a", "size": 0.5}]).schema.names
    ['y_mean', 'y_std', 'y_lower', 'y_upper', 'y_epistemic']
    """

    schema: Schema
    estimator: Any
    calibration: Calibration | None = None
    conformal: Conformal | None = None
    deferral: DeferralPolicy | None = None

    @classmethod
    def fit(  # noqa: PLR0913, a door: all but the table by name
        cls,
        table: Any,
        *,
        target: str,
        classify: bool = False,
        drop: Iterable[str] = (),
        use: Iterable[str] = (),
        categories: Iterable[str] = (),
        units: Mapping[str, str] | None = None,
        missing: Iterable[str] = (),
        decimal: str = ".",
        preset: str = "auto",
        estimator: Any = None,
        seed: int = 0,
        progress: bool | None = False,
    ) -> Self:
        """Learn the columns of a table, and fit an estimator to its target.

        Parameters
        ----------
        table : table
            Of pyarrow, pandas or polars, a dict of columns, a list of dicts, or an
            open :class:`TableSource`.
        target : str
            The column to predict. Rows without it are left out.
        classify : bool, default False
            Whether its values are labels.
        drop : iterable of str
            Columns not to be used.
        use : iterable of str
            Columns to be used although they look like identifiers.
        categories : iterable of str
            Columns that are categories although they look like numbers.
        units : mapping of str to str, optional
            Units of columns, which are kept with the model; by default what the
            metadata of Arrow's fields say (``unit``).
        missing : iterable of str
            Texts that stand for missing values, beside the usual ones.
        decimal : {".", ","}
            Of numbers in texts.
        preset : {"auto", "fast", "best"}
            How much the choice of a model may cost.
        estimator : estimator, optional
            To be fitted instead of a pool: an unfitted estimator of Caveat.
        seed : int, default 0
            Of the fit.
        progress : bool or None, default False
            Whether to show a bar; None does so on a terminal.

        Returns
        -------
        FrameModel
        """
        source = table if isinstance(table, TableSource) else as_source(table)
        if decimal not in (".", ","):
            raise ParameterError(f"decimal must be '.' or ','. Got {decimal!r}.")
        spelling = Spelling(tuple(dict.fromkeys((*MISSING, *missing))), decimal)
        wishes = Wishes(tuple(drop), tuple(use), tuple(categories), units)
        origin = Origin(source.name, source.is_untyped, source.delimiter)
        if source.names is not None:
            wishes.check(source.names, target, source.name)
        rows = source.whole()
        wishes.check(rows.schema.names, target, source.name)
        own, y, has = learn_target(
            rows,
            target,
            classify=classify,
            origin=origin,
            spelling=spelling,
            unit=unit_of(rows, target, wishes),
        )
        _check_target(source.name, target, y, classify)
        rows = rows.filter(pa.array(has))
        schema = learn_columns(rows, own, wishes, origin, spelling)
        x = Encoder(schema).matrix(rows, source.name, delimiter=source.delimiter)
        warn_of_leaks(schema, x, y.astype(str) if y.dtype == object else y)
        if estimator is None:
            kind = DropoutClassifier if classify else DropoutRegressor
            estimator = kind(preset=preset, random_state=seed, progress=progress)
        return cls(schema, _fitted(estimator, x, y, source.name))

    def attach(self, *policies: Any) -> Self:
        """The same model with a calibration, conformal sets or a deferral on top.

        Parameters
        ----------
        *policies
            What ``caveat.evaluation.calibrate``, ``caveat.decisions.conformal`` and
            ``caveat.decisions.defer`` return, made from :meth:`predictive` of rows that
            trained nothing. A kind that is attached already is replaced.

        Returns
        -------
        FrameModel
        """
        found = self
        for policy in policies:
            found = replace(found, **{_slot(policy): policy})
        return found

    # ------------------------------------------------------------ questions

    @property
    def is_classifier(self) -> bool:
        """Whether labels are predicted."""
        return self.schema.target.is_label

    @property
    def classes(self) -> list[Any]:
        """The labels, in order; empty for a regression."""
        return list(self.estimator.classes_.tolist()) if self.is_classifier else []

    def lines(self) -> list[str]:
        """What was done with the columns, and what was chosen, a line each."""
        found = self.schema.lines()
        best = getattr(self.estimator, "best_estimator_", self.estimator)
        for candidate in getattr(best, "candidates_", ()):
            found.append(
                f"candidate: {candidate.name}, held-out log-likelihood "
                f"{candidate.log_likelihood:.4f}, weight {candidate.weight:.2f}"
            )
        value = getattr(best, "validation_log_likelihood_", None)
        if value is not None:
            found.append(f"held-out log-likelihood of the pool: {value:.4f}")
        for policy in (self.calibration, self.conformal, self.deferral):
            if policy is not None:
                found.append(f"attached: {type(policy).__name__}")
        return found

    def matrix(self, table: Any, *, unseen: str = "error") -> Array:
        """The features of a table, as the estimator takes them.

        Values that are missing where fit has seen none are filled in, with a warning.

        Parameters
        ----------
        table : table
            As for :meth:`fit`; the target is not needed.
        unseen : {"error", "missing"}
            What a category is that fit has not seen.

        Returns
        -------
        array, shape (rows, features)
        """
        source, encoder = as_source(table), Encoder(self.schema, unseen=unseen)
        found = encoder.matrix(source.whole(), source.name)
        for sentence in encoder.sentences():
            warnings.warn(f"{source.name}: {sentence}.", CaveatWarning, stacklevel=3)
        return found

    def targets(self, table: Any) -> NDArray[Any]:
        """The target of a table: numbers, or the numbers of its classes.

        Parameters
        ----------
        table : table
            With the target, none of it missing.

        Returns
        -------
        array, shape (rows,)
        """
        source = table if isinstance(table, TableSource) else as_source(table)
        target = self.schema.target
        rows, name = source.whole(), target.name
        if name not in rows.schema.names:
            raise DataError(f"{source.name} must have the target column {name!r}.")
        _, y, has = learn_target(
            rows,
            name,
            classify=target.is_label,
            origin=Origin(source.name, source.is_untyped, source.delimiter),
            spelling=Spelling(self.schema.missing, self.schema.decimal),
        )
        if not has.all():
            row = int((~has).argmax()) + 1
            raise DataError(
                f"{source.name}, row {row}: the target {name!r} is missing."
            )
        return self._numbers(y, source.name) if target.is_label else y

    def _numbers(self, y: NDArray[Any], source: str) -> NDArray[np.int64]:
        places = {label: number for number, label in enumerate(self.classes)}
        if self.schema.target.kind == "text":
            y = y.astype(str).astype(object)
        for row, label in enumerate(y.tolist()):
            if label not in places:
                raise DataError(
                    f"{source}, row {row + 1}: column {self.schema.target.name!r} "
                    f"holds the label {label!r}, which fit has not seen."
                )
        return np.array([places[label] for label in y.tolist()], dtype=np.int64)

    def predictive(
        self,
        table: Any,
        *,
        n_draws: int | None = None,
        seed: int = 0,
        unseen: str = "error",
    ) -> Predictive:
        """The predictive distribution of all rows, calibrated and conformal if so.

        Parameters
        ----------
        table : table
            As for :meth:`fit`.
        n_draws : int, optional
            By default that of the estimator.
        seed : int, default 0
            Of the draws.
        unseen : {"error", "missing"}
            What a category is that fit has not seen.

        Returns
        -------
        Predictive
            Classes as numbers, in the order of ``classes``.
        """
        x = self.matrix(table, unseen=unseen)
        return self.predictive_of(x, n_draws=n_draws, seed=seed)

    def predictive_of(
        self, x: Array, *, n_draws: int | None = None, seed: int = 0
    ) -> Predictive:
        """The predictive distribution of rows of features, as :meth:`predictive`.

        Parameters
        ----------
        x : array, shape (rows, features)
            Of :meth:`matrix`.
        n_draws : int, optional
            By default that of the estimator.
        seed : int, default 0
            Of the draws.

        Returns
        -------
        Predictive
        """
        found: Predictive = self._with_policies(self._asked(x, n_draws, seed))
        return found

    def predict_table(
        self,
        table: Any,
        *,
        level: float = 0.9,
        n_draws: int | None = None,
        tolerance: float | None = None,
        seed: int = 0,
        unseen: str = "error",
    ) -> Any:
        """The answers for all rows as columns.

        Parameters
        ----------
        table : table
            As for :meth:`fit`.
        level : float, default 0.9
            Of the intervals.
        n_draws : int, optional
            By default that of the estimator.
        tolerance : float, optional
            Instead of ``n_draws``: draw until the Monte Carlo error of a row's mean is
            below this fraction of its standard deviation; of a class, of √(p(1-p)).
            Each row for itself, at most 6,400 times.
        seed : int, default 0
            Of the draws.
        unseen : {"error", "missing"}
            What a category is that fit has not seen.

        Returns
        -------
        pyarrow.Table
            ``y_mean``, ``y_std``, ``y_lower``, ``y_upper`` and ``y_epistemic`` (the
            part of ``y_std`` that more data would remove), with the name of the target
            for y; or ``y_label``, ``y_prob_<class>``, ``y_entropy`` and
            ``y_mutual_information`` (in nats). ``y_set`` with conformal sets,
            ``y_deferred`` with a deferral policy.
        """
        x = self.matrix(table, unseen=unseen)
        asking = Asking.of(level=level, n_draws=n_draws, tolerance=tolerance, seed=seed)
        return self.answers(x, asking)

    def answers(self, x: Array, asking: Asking) -> Any:
        """The answers for rows of features.

        Parameters
        ----------
        x : array, shape (rows, features)
            Of :meth:`matrix`.
        asking : Asking
            Level, draws and seed.

        Returns
        -------
        pyarrow.Table
        """
        starts = range(0, len(x), ROWS)
        blocks = [self._block(x[start : start + ROWS], asking) for start in starts]
        whole = {n: np.concatenate([b[n] for b in blocks]) for n in blocks[0]}
        own = [pa.array(whole[field.name], field.type) for field in self.answer_schema]
        return pa.Table.from_arrays(own, schema=self.answer_schema)

    @property
    def answer_schema(self) -> Any:
        """The ``pyarrow.Schema`` of all answers."""
        return pa.schema(
            answer_types(
                self.schema.target,
                self.classes,
                has_sets=isinstance(self.conformal, ConformalSets),
                defers=self.deferral is not None,
            )
        )

    # ------------------------------------------------------------ private

    def _block(self, x: Array, asking: Asking) -> Answers:
        """Answers for at most ``ROWS`` rows, computed as exactly so many."""
        if asking.tolerance is None:
            own = self._answered(self._padded(x, asking.n_draws, asking.seed), asking)
            return {name: values[: len(x)] for name, values in own.items()}
        left = np.arange(len(x))
        found: Answers = {}
        for number in asking.ladder:
            asked = self._padded(x[left], number, asking.seed)
            for name, values in self._answered(asked, asking).items():
                found.setdefault(name, values[: len(x)].copy())
                found[name][left] = values[: len(left)]
            left = left[~asking.is_enough(asked)[: len(left)]]
            if not len(left):
                break
        return found

    def _padded(self, x: Array, n_draws: int | None, seed: int) -> Predictive:
        """Of exactly ``ROWS`` rows: the first one fills up what is not there."""
        full = np.concatenate([x, np.repeat(x[:1], ROWS - len(x), 0)])
        return self._asked(full, n_draws, seed)

    def _answered(self, predictive: Predictive, asking: Asking) -> Answers:
        found = self._with_policies(predictive)
        target = self.schema.target
        has_sets = isinstance(self.conformal, ConformalSets)
        own = answer_columns(
            found, target, self.classes, asking.level, has_sets=has_sets
        )
        if self.deferral is not None:
            own[f"{target.name}_deferred"] = self.deferral.apply(found).deferred
        return own

    def _with_policies(self, predictive: Any) -> Any:
        if self.calibration is not None:
            predictive = self.calibration.apply(predictive)
        if self.conformal is not None:
            predictive = self.conformal.apply(predictive)
        return predictive

    def _asked(self, x: Array, n_draws: int | None, seed: int) -> Predictive:
        estimator = self.estimator
        if isinstance(estimator, DropoutSearchCV):
            estimator = estimator.best_estimator_
        if isinstance(estimator, BayesianDropoutClassifier):
            number = 400 if n_draws is None else n_draws
            return estimator.predictive(x, n_draws=number, random_state=seed)
        if isinstance(estimator, DropoutRegressor | DropoutClassifier):
            estimator = copy(estimator)  # a shallow one: what it has learned is shared
            estimator.n_draws = estimator.n_draws if n_draws is None else n_draws
            if seed:
                estimator._seed = mask_seed(estimator._seed, seed)
        found: Predictive = estimator.predictive(x)
        return found

    def __repr__(self) -> str:
        kind = type(self.estimator).__name__
        return (
            f"FrameModel: {kind} of {self.schema.target.name!r} from "
            f"{len(self.schema.columns)} columns, {self.schema.n_rows} rows"
        )


def _check_target(source: str, name: str, y: NDArray[Any], classify: bool) -> None:
    if len(y) < 2:
        raise DataError(
            f"{source} must have at least 2 rows with the target {name!r}. "
            f"Got {len(y)}."
        )
    if len(np.unique(y.astype(str) if y.dtype == object else y)) < 2:
        what = "labels of two classes" if classify else "different numbers"
        raise DataError(
            f"{source}: the target column {name!r} must hold {what}. All rows hold "
            f"{y.tolist()[0]!r}."
        )


def _fitted(estimator: Any, x: Array, y: NDArray[Any], source: str) -> Any:
    if y.dtype == object:
        y = y.astype(str)
    try:
        return estimator.fit(x, y)
    except CaveatError:
        raise
    except ValueError as error:  # scikit-learn's checks
        raise DataError(f"{source} cannot be fitted: {error}") from error


def _slot(policy: Any) -> str:
    """Which attribute a policy is."""
    if isinstance(policy, PrecisionCalibration | TemperatureCalibration):
        return "calibration"
    if isinstance(policy, DeferralPolicy):
        return "deferral"
    if isinstance(policy, ConformalIntervals):
        return "conformal"
    if isinstance(policy, ConformalSets):
        return "conformal"
    raise InputTypeError(
        f"A policy must be a calibration, conformal intervals or sets, or a deferral "
        f"policy. Got {type(policy).__name__}."
    )
