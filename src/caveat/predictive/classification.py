"""The classification side of the waist: the predictive of class numbers.

.. [Gal2016] Y. Gal, Z. Ghahramani. Dropout as a Bayesian approximation:
   representing model uncertainty in deep learning. ICML 2016 (seed paper 001, 5.2).
.. [Houlsby2011] N. Houlsby, F. Huszár, Z. Ghahramani, M. Lengyel. Bayesian active
   learning for classification and preference learning. arXiv 1112.5745, 2011.
"""

from abc import abstractmethod
from dataclasses import dataclass

from torch import Tensor

from caveat import _validation
from caveat._random import random_uniform, stream_key
from caveat.predictive.base import Predictive
from caveat.predictive.moments import wide_dtype
from caveat.predictive.tally import sampled_labels


@dataclass(frozen=True, eq=False, repr=False)
class ClassificationPredictive(Predictive):
    """Probabilities of the classes of each row; classes are the last axis.

    What all classifications answer is said here, once. With p_t the probabilities under
    one function and pbar their average over functions [Gal2016]_; information is in
    nats.
    """

    @property
    @abstractmethod
    def probs(self) -> Tensor:
        """pbar, shape (batch, *extra, classes) (ledger E7).

        An average of probabilities, never of logits.
        """

    @property
    @abstractmethod
    def log_probs(self) -> Tensor:
        """Log of ``probs``, right also where ``probs`` underflows to 0."""

    @property
    @abstractmethod
    def entropy(self) -> Tensor:
        """Entropy of ``probs``: all uncertainty about the label (ledger E8).

        Shape (batch, *extra), as of all measures of uncertainty.
        """

    @property
    @abstractmethod
    def expected_entropy(self) -> Tensor:
        """Average entropy of p_t: the part that no weights explain (ledger E9)."""

    @property
    @abstractmethod
    def mutual_information(self) -> Tensor:
        """Their difference: what the label would tell about the weights (ledger E10).

        BALD of [Houlsby2011]_.
        """

    @property
    @abstractmethod
    def variation_ratio(self) -> Tensor:
        """Share of labels, one *sampled* from each p_t, that are not the mode (E11).

        Where nothing was sampled it is what that share tends to with many draws,
        1 - max(``probs``).
        """

    @property
    def label(self) -> Tensor:
        """The most probable class; int64 of shape (batch, *extra)."""
        return self.probs.argmax(-1)

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

    def __len__(self) -> int:
        return len(self.probs)

    def _sample(self, number: int, seed: int) -> Tensor:
        probs = self.probs.to(wide_dtype(self.probs.device))
        key, shape = stream_key(seed, "observed labels"), (*probs.shape[:-1], 1)
        uniforms = random_uniform(key, range(number), shape).to(probs)
        return sampled_labels(probs, uniforms)

    def _columns(self) -> dict[str, Tensor]:
        names = (
            "label probs mean_error entropy expected_entropy mutual_information "
            "variation_ratio"
        )
        return {name: getattr(self, name) for name in names.split()}

    def _highlights(self) -> dict[str, Tensor]:
        return {
            "largest probability": self.probs.amax(-1),
            "entropy": self.entropy,
            "mutual information": self.mutual_information,
        }
