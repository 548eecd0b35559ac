"""The predictive of a classifier: averaged probabilities and their disagreement.

.. [Gal2016] Y. Gal, Z. Ghahramani. Dropout as a Bayesian approximation:
   representing model uncertainty in deep learning. ICML 2016 (seed paper 001, 5.2).
.. [Houlsby2011] N. Houlsby, F. Huszár, Z. Ghahramani, M. Lengyel. Bayesian active
   learning for classification and preference learning. arXiv 1112.5745, 2011.
"""

import math
from dataclasses import dataclass, field
from typing import Self, final

import torch
from torch import Tensor

from caveat import _validation
from caveat._random import Seed, as_seed
from caveat.errors import DrawsNotKeptError
from caveat.predictive.base import DRAWS_FIRST, Predictive, count_of
from caveat.predictive.moments import Moments, working_dtype
from caveat.predictive.tally import Tally


@final
@dataclass(frozen=True, eq=False, repr=False)
class CategoricalPredictive(Predictive):
    """Class probabilities and uncertainties, from the logits of T draws [Gal2016]_.

    With p_t = softmax of draw t; classes are the last axis. Make one by
    :meth:`from_logits`, or by ``MCDropout.classify``. All but ``draws`` is known
    whether the draws are kept or not. No gradient passes through it.

    Attributes
    ----------
    probs : Tensor, shape (batch, *extra, classes)
        Average of the probabilities, never of the logits (ledger E7).
    log_probs : Tensor, shape (batch, *extra, classes)
        Log of ``probs``, right also where ``probs`` underflows to 0.
    mean_error : Tensor, shape (batch, *extra, classes)
        Monte Carlo standard error of ``probs`` (ledger E4); infinite for T = 1.
    entropy : Tensor, shape (batch, *extra)
        Entropy of ``probs`` in nats: all uncertainty about the label (ledger E8).
    expected_entropy : Tensor, shape (batch, *extra)
        Average entropy of the draws: the part that no weights explain (ledger E9).
    mutual_information : Tensor, shape (batch, *extra)
        Their difference: what the label would tell about the weights (ledger E10;
        BALD [Houlsby2011]_).
    variation_ratio : Tensor, shape (batch, *extra)
        Share of labels, one *sampled* from each draw, that are not the most frequent
        one (ledger E11). One uniform number per draw serves all rows, so each row is
        right by itself, and the answer depends neither on batching nor on row order.
    argmax_variation_ratio : Tensor, shape (batch, *extra)
        The same with the most probable label of each draw (ledger E12). It ignores
        the noise within draws and is in general smaller.
    logits_mean, logits_std : Tensor, shape (batch, *extra, classes)
        Of the logits over draws. For a class masked by -inf: -inf and 0 if in all
        draws, -inf and inf if in some.

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

    probs: Tensor
    log_probs: Tensor
    mean_error: Tensor
    entropy: Tensor
    expected_entropy: Tensor
    mutual_information: Tensor
    variation_ratio: Tensor
    argmax_variation_ratio: Tensor
    logits_mean: Tensor
    logits_std: Tensor
    _draws: Tensor | None = field(default=None, metadata=DRAWS_FIRST)

    @classmethod
    def from_logits(cls, logits: Tensor, *, seed: Seed = 0) -> Self:
        """The predictive of the logits of T stochastic passes.

        Parameters
        ----------
        logits : Tensor, shape (draws, batch, *extra, classes)
            Held, not copied. A logit of -inf masks a class.
        seed : int, torch.Generator or None, default 0
            Of the labels sampled for ``variation_ratio``.

        Returns
        -------
        CategoricalPredictive
            Which keeps the logits as its ``draws``.
        """
        logits = _validation.logits(logits)
        tally = Tally.of(logits, seed=as_seed(seed))
        return cls.from_tally(tally, working_dtype(logits.dtype), logits.detach())

    @classmethod
    def from_tally(
        cls, tally: Tally, dtype: torch.dtype, draws: Tensor | None = None
    ) -> Self:
        """The predictive of a finished tally; what accumulators end with.

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
            With all answers computed.
        """
        probs = tally.probs
        entropy, expected, information = _entropies(tally)
        logits_mean, logits_std = _logit_moments(tally)
        return cls(
            n_draws=probs.count,
            probs=probs.mean.to(dtype),  # E7: pbar = (1/T) sum_t softmax(logits_t)
            log_probs=(tally.log_sum - math.log(probs.count)).to(dtype),
            mean_error=probs.mean_error.to(dtype),  # E4
            entropy=entropy.to(dtype),
            expected_entropy=expected.to(dtype),
            mutual_information=information.to(dtype),
            variation_ratio=_variation_ratio(tally.sampled, probs).to(dtype),
            argmax_variation_ratio=_variation_ratio(tally.favoured, probs).to(dtype),
            logits_mean=logits_mean.to(dtype),
            logits_std=logits_std.to(dtype),
            _draws=draws,
        )

    def __len__(self) -> int:
        return len(self.probs)

    @property
    def label(self) -> Tensor:
        """The most probable class; int64 of shape (batch, *extra)."""
        return self.probs.argmax(-1)

    @property
    def draws(self) -> Tensor:
        """The logits, shape (draws, batch, *extra, classes), if they were kept."""
        if self._draws is None:
            raise DrawsNotKeptError(
                "draws were not kept, only what was counted from them. "
                "Pass keep_draws=True to MCDropout.classify."
            )
        return self._draws

    def log_prob(self, y: Tensor) -> Tensor:
        """Log probability of observed classes under ``probs``.

        Parameters
        ----------
        y : Tensor of integers, shape (batch, *extra)
            Class numbers from 0.

        Returns
        -------
        Tensor, shape (batch, *extra)
            One for each label, not summed over ``extra``.
        """
        *shape, n_classes = self.probs.shape
        y = _validation.class_labels(y, shape, n_classes).to(self.probs.device)
        # E7: log pbar_y = logsumexp_t log p_ty - log T
        return self.log_probs.gather(-1, y.unsqueeze(-1)).squeeze(-1)

    def _columns(self) -> dict[str, Tensor]:
        names = (
            "label probs mean_error entropy expected_entropy mutual_information "
            "variation_ratio argmax_variation_ratio"
        )
        return {name: getattr(self, name) for name in names.split()}

    def _headline(self) -> str:
        kept = "kept" if self._draws is not None else "not kept"
        rows, draws = count_of(len(self), "row"), count_of(self.n_draws, "draw")
        extra = f" of {tuple(self.entropy.shape[1:])}" if self.entropy.ndim > 1 else ""
        return f"{rows}{extra}, {self.probs.shape[-1]} classes, {draws} ({kept})"

    def _highlights(self) -> dict[str, Tensor]:
        return {
            "largest probability": self.probs.amax(-1),
            "entropy": self.entropy,
            "mutual information": self.mutual_information,
        }


def _entropies(tally: Tally) -> tuple[Tensor, Tensor, Tensor]:
    """Predictive entropy, expected entropy and their difference."""
    most = math.log(tally.probs.mean.shape[-1])
    # E8: H(pbar) = -sum_c pbar_c log pbar_c
    entropy = torch.special.entr(tally.probs.mean).sum(-1).clamp(0.0, most)
    # E9: (1/T) sum_t H(p_t), at most H(pbar) but for rounding
    expected = torch.minimum(tally.entropy / tally.probs.count, entropy)
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
