"""The predictive of a classifier: averaged probabilities and their disagreement.

.. [Gal2016] Y. Gal, Z. Ghahramani. Dropout as a Bayesian approximation:
   representing model uncertainty in deep learning. ICML 2016 (paper 001, 5.2).
"""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, final

import torch
from torch import Tensor

from caveat import _validation
from caveat._random import Seed, as_seed
from caveat._threads import core_for
from caveat.errors import CaveatWarning, DrawsNotKeptError
from caveat.predictive.base import DRAWS_FIRST, count_of
from caveat.predictive.class_errors import ClassErrors
from caveat.predictive.classification import ClassificationPredictive
from caveat.predictive.late import Late
from caveat.predictive.moments import Moments, working_dtype
from caveat.predictive.softmax import look_like_probs
from caveat.predictive.strata import Stratification, pooled, some_rows
from caveat.predictive.tally import TINY, Averages, Tally


@final
@dataclass(frozen=True, eq=False, repr=False)
class CategoricalPredictive(ClassificationPredictive):
    """Class probabilities and uncertainties, from the logits of T draws [Gal2016]_.

    With p_t = softmax of draw t. Make one by :meth:`from_logits`, or by
    ``MCDropout.classify``; of a network without noise by :meth:`point`. All but
    ``draws`` is known whether the draws are kept or not. For ``variation_ratio`` one
    uniform number per draw serves all rows, so each row is right by itself, and the
    answer depends neither on batching nor on row order.

    Attributes
    ----------
    method : str
        How probabilities and entropies were found: ``"sampled"``, from the draws; or
        ``"last masks"``, with several masks before the last layer for each draw.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[[2.0, 0.0], [2.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]]])
    >>> predictive = CategoricalPredictive.from_logits(logits)  # 2 draws, 2 rows
    >>> predictive.probs
    tensor([[0.8808, 0.1192],
            [0.5000, 0.5000]])
    >>> predictive.mutual_information.round(decimals=4)  # draws agree on row 0 only
    tensor([0.0000, 0.3278])
    >>> predictive.argmax_variation_ratio
    tensor([0.0000, 0.5000])
    """

    _probs: Tensor
    _log_probs: Tensor
    _entropy: Tensor
    _expected_entropy: Tensor
    _mutual_information: Tensor
    _variation_ratio: Tensor | None = None  # these four are there, or counted late
    _argmax_variation_ratio: Tensor | None = None
    _logits_mean: Tensor | None = None
    _logits_std: Tensor | None = None
    _counted: Late[Mapping[str, Tensor]] | None = None
    _draws: Tensor | None = field(default=None, metadata=DRAWS_FIRST)
    _mean_error: Tensor | None = None  # these four are there, or late
    _entropy_error: Tensor | None = None
    _expected_entropy_error: Tensor | None = None
    _mutual_information_error: Tensor | None = None
    _late: Late[Mapping[str, Tensor]] | None = None
    method: str = "sampled"

    @classmethod
    def from_logits(
        cls, logits: Tensor, *, seed: Seed = 0, design: Stratification | None = None
    ) -> Self:
        """The predictive of the logits of T stochastic passes.

        Parameters
        ----------
        logits : Tensor, shape (draws, batch, *extra, classes)
            Held, not copied. A logit of -inf masks a class.
        seed : int, torch.Generator or None, default 0
            Of the labels sampled for ``variation_ratio``.
        design : Stratification, optional
            How the draws were stratified, from draw 0 on; without one they count as
            independent. It is what Monte Carlo errors depend on.

        Returns
        -------
        CategoricalPredictive
            Which keeps the logits as its ``draws``.
        """
        logits = _validation.logits(logits).detach()
        _warn_of_probs(logits)
        found = cls.averaged(logits)
        return found.counted(as_seed(seed)).stratified(design)

    @classmethod
    def averaged(cls, logits: Tensor) -> Self:
        """What :meth:`from_logits` gives, but for what is counted, and for errors.

        Parameters
        ----------
        logits : Tensor, shape (draws, batch, *extra, classes)
            Held, not copied.

        Returns
        -------
        CategoricalPredictive
            To be completed by :meth:`counted` and :meth:`stratified`.
        """
        dtype = working_dtype(logits.dtype)
        with core_for(logits.numel()):
            count, probs, log_probs, mean_entropy = Averages.of(logits)
            entropy, expected, information = _entropies(probs, mean_entropy)
        return cls(
            n_draws=count,
            _probs=probs.to(dtype),
            _log_probs=log_probs.to(dtype),
            _entropy=entropy.to(dtype),
            _expected_entropy=expected.to(dtype),
            _mutual_information=information.to(dtype),
            _draws=logits,
        )

    def counted(self, seed: int) -> Self:
        """The same with sampled labels and moments of logits, when they are asked for.

        Parameters
        ----------
        seed : int
            Of the labels.

        Returns
        -------
        CategoricalPredictive
            Which shares the draws of this one.
        """
        return self._with(_counted=Late(_counts, self.draws, seed))

    @classmethod
    def point(cls, logits: Tensor) -> Self:
        """The answer of a network whose noise is turned off.

        Parameters
        ----------
        logits : Tensor, shape (batch, *extra, classes)
            What the network says. A logit of -inf masks a class.

        Returns
        -------
        CategoricalPredictive
            With no draws and no mutual information: it knows nothing of what the
            network does not know. The variation ratio is 1 - max(``probs``).

        Examples
        --------
        >>> import torch
        >>> one = CategoricalPredictive.point(torch.tensor([[2.0, 0.0]]))
        >>> one.probs, one.variation_ratio, one.mutual_information
        (tensor([[0.8808, 0.1192]]), tensor([0.1192]), tensor([0.]))
        """
        logits = _validation.floating("logits", logits).detach()
        tally = Tally.of(_validation.logits(logits.unsqueeze(0)), seed=0)
        found = cls.from_tally(tally, working_dtype(logits.dtype))
        nothing = torch.zeros_like(found.entropy)
        return replace(
            found,
            n_draws=0,
            _mean_error=torch.zeros_like(found.probs),
            _expected_entropy=found.entropy,
            _mutual_information=nothing,
            _variation_ratio=1.0 - found.probs.amax(-1),
            _argmax_variation_ratio=nothing,
            _entropy_error=nothing,
            _expected_entropy_error=nothing,
            _mutual_information_error=nothing,
        )

    @classmethod
    def from_tally(
        cls, tally: Tally, dtype: torch.dtype, draws: Tensor | None = None
    ) -> Self:
        """The predictive of a finished tally, still without errors.

        Parameters
        ----------
        tally : Tally
            Of all draws.
        dtype : torch.dtype
            The type of the answers.
        draws : Tensor, optional
            The logits themselves, if they are to be kept.

        Returns
        -------
        CategoricalPredictive
            Which gets its errors by :meth:`with_errors` or :meth:`stratified`.
        """
        probs = tally.probs
        entropies = _entropies(probs.mean, tally.entropy / probs.count)
        entropy, expected, information = (value.to(dtype) for value in entropies)
        found = cls(
            n_draws=probs.count,
            _probs=probs.mean.to(dtype),  # E7: pbar = (1/T) sum_t softmax(logits_t)
            _log_probs=(tally.log_sum - math.log(probs.count)).to(dtype),
            _entropy=entropy,
            _expected_entropy=expected,
            _mutual_information=information,
            _draws=draws,
        )
        counts = _counts_of(tally)
        return found._with(**{f"_{name}": v.to(dtype) for name, v in counts.items()})

    def with_averages(
        self,
        probs: Tensor,
        mean_entropy: Tensor,
        *,
        errors: Late[Mapping[str, Tensor]],
        method: str,
    ) -> Self:
        """The same draws beside averages over the noise that were found better.

        Parameters
        ----------
        probs : Tensor, shape (batch, *extra, classes)
            Class probabilities.
        mean_entropy : Tensor, shape (batch, *extra)
            The average of their entropies.
        errors : Late mapping of Tensor
            Monte Carlo errors, by the name of what they are of.
        method : str
            How they were found.

        Returns
        -------
        CategoricalPredictive
            Which shares the draws of this one, and what is counted of them.
        """
        dtype = self._probs.dtype
        entropy, expected, information = _entropies(probs, mean_entropy)
        # Where probabilities underflow, the draws know their logarithms.
        log_probs = torch.where(probs > TINY, probs.log().to(dtype), self._log_probs)
        return self._with(
            _probs=probs.to(dtype),
            _log_probs=log_probs,
            _entropy=entropy.to(dtype),
            _expected_entropy=expected.to(dtype),
            _mutual_information=information.to(dtype),
            _late=errors,
            method=method,
        )

    def with_errors(self, errors: Mapping[str, Tensor]) -> Self:
        """The same with Monte Carlo errors, by the name of what they are of."""
        named = {f"_{name}_error": e.to(self._probs) for name, e in errors.items()}
        changed: dict[str, Any] = {"_late": None, **named}
        return replace(self, **changed)

    def stratified(self, design: Stratification | None) -> Self:
        """The same with the errors of draws stratified by a design; None: independent.

        They are worked out when one of them is first asked for, of all rows.
        """
        return self._with(_late=Late(_errors, self.draws, design))

    @property
    def probs(self) -> Tensor:
        return self._probs

    @property
    def log_probs(self) -> Tensor:
        return self._log_probs

    @property
    def mean_error(self) -> Tensor:
        return self._error("mean")

    @property
    def entropy_error(self) -> Tensor:
        """Monte Carlo standard error of ``entropy``, shape (batch, *extra)."""
        return self._error("entropy")

    @property
    def expected_entropy_error(self) -> Tensor:
        """Monte Carlo standard error of ``expected_entropy``, shape (batch, *extra)."""
        return self._error("expected_entropy")

    @property
    def mutual_information_error(self) -> Tensor:
        """That of ``mutual_information``, shape (batch, *extra)."""
        return self._error("mutual_information")

    @property
    def entropy(self) -> Tensor:
        return self._entropy

    @property
    def expected_entropy(self) -> Tensor:
        return self._expected_entropy

    @property
    def mutual_information(self) -> Tensor:
        return self._mutual_information

    @property
    def variation_ratio(self) -> Tensor:
        return self._count("variation_ratio")

    @property
    def argmax_variation_ratio(self) -> Tensor:
        """``variation_ratio`` with the most probable label of each draw (ledger E12).

        It ignores the noise within draws and is in general smaller.
        """
        return self._count("argmax_variation_ratio")

    @property
    def logits_mean(self) -> Tensor:
        """Of the logits over draws, shape (batch, *extra, classes).

        -inf for a class that is masked by -inf in some draw.
        """
        return self._count("logits_mean")

    @property
    def logits_std(self) -> Tensor:
        """Of the logits over draws, shape (batch, *extra, classes).

        For a class masked by -inf: 0 if in all draws, inf if in some.
        """
        return self._count("logits_std")

    @property
    def draws(self) -> Tensor:
        if self.n_draws == 0:
            return super().draws
        if self._draws is None:
            raise DrawsNotKeptError(
                "draws were not kept, only what was counted from them. "
                "Pass keep_draws=True to MCDropout.classify."
            )
        return self._draws

    def _error(self, name: str) -> Tensor:
        if self._late is not None:
            return self._late.value[name].to(self._probs.dtype)
        found: Tensor = getattr(self, f"_{name}_error")
        return found

    def _count(self, name: str) -> Tensor:
        if self._counted is not None:
            return self._counted.value[name].to(self._probs.dtype)
        found: Tensor = getattr(self, f"_{name}")
        return found

    def _settled(self) -> Self:
        found = self
        if self._counted is not None:
            counts = {f"_{name}": self._count(name) for name in self._counted.value}
            found = found._with(_counted=None, **counts)
        return found if self._late is None else found.with_errors(self._late.value)

    def _columns(self) -> dict[str, Tensor]:
        own = {"argmax_variation_ratio": self.argmax_variation_ratio}
        return super()._columns() | own

    def _headline(self) -> str:
        extra = f" of {tuple(self.entropy.shape[1:])}" if self.entropy.ndim > 1 else ""
        rows = f"{count_of(len(self), 'row')}{extra}, {self.probs.shape[-1]} classes"
        if self.n_draws == 0:
            return f"{rows}, point"
        kept = "kept" if self._draws is not None else "not kept"
        return f"{rows}, {count_of(self.n_draws, 'draw')} ({kept})"


_PROBS = """The logits are at least 0 and sum to 1 in every row: they look like
probabilities, of which the softmax is taken once more. Pass their logarithms."""


def _warn_of_probs(logits: Tensor) -> None:
    """Not of zeros and ones, which may be hard logits."""
    if look_like_probs(logits) and bool(((logits > 0.0) & (logits < 1.0)).any()):
        warnings.warn(_PROBS, CaveatWarning, stacklevel=3)


def _errors(logits: Tensor, design: Stratification | None) -> dict[str, Tensor]:
    """Of stratified draws that are all at hand, by the name of what they are of."""
    parts = []
    for rows in some_rows(logits):
        errors = ClassErrors(design)
        tally = Tally.of(rows, seed=0, watch=errors.add)
        parts.append(errors.seen(tally.probs))
    evidence = pooled([part.evidence for part in parts])
    found = [part.errors(evidence) for part in parts]
    return {name: torch.cat([part[name] for part in found]) for name in found[0]}


def _counts(logits: Tensor, seed: int) -> dict[str, Tensor]:
    """What is counted of draws that are all at hand."""
    parts = [_counts_of(Tally.of(rows, seed=seed)) for rows in some_rows(logits)]
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def _counts_of(tally: Tally) -> dict[str, Tensor]:
    logits_mean, logits_std = _logit_moments(tally)
    return {
        "variation_ratio": _variation_ratio(tally.sampled, tally.probs),
        "argmax_variation_ratio": _variation_ratio(tally.favoured, tally.probs),
        "logits_mean": logits_mean,
        "logits_std": logits_std,
    }


def _entropies(probs: Tensor, mean_entropy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Predictive entropy, expected entropy and their difference."""
    most = math.log(probs.shape[-1])
    # E8: H(pbar) = -sum_c pbar_c log pbar_c
    entropy = torch.special.entr(probs).sum(-1).clamp(0.0, most)
    # E9: (1/T) sum_t H(p_t), at most H(pbar) but for rounding
    expected = torch.minimum(mean_entropy, entropy)
    # E10: I = H(pbar) - (1/T) sum_t H(p_t)
    return entropy, expected, entropy - expected


def _variation_ratio(counts: Tensor, probs: Moments) -> Tensor:
    """Share of labels, counted as (batch, *extra, classes), that are not the mode."""
    # E11 (labels sampled from p_t) and E12 (argmax p_t): v = 1 - count(mode) / T
    return 1.0 - counts.amax(-1).to(probs.mean.dtype) / probs.count


def _logit_moments(tally: Tally) -> tuple[Tensor, Tensor]:
    mean, std = tally.logits.mean, tally.logits.variance.sqrt()
    always = tally.masked == tally.logits.count
    sometimes = (tally.masked > 0) & ~always
    return (
        mean.masked_fill(always | sometimes, -torch.inf),
        std.masked_fill(sometimes, torch.inf),
    )
