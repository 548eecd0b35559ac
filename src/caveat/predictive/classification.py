"""The classification side of the waist: the predictive of class numbers.

.. [Gal2016] Y. Gal, Z. Ghahramani. Dropout as a Bayesian approximation:
   representing model uncertainty in deep learning. ICML 2016 (paper 001, 5.2).
.. [Houlsby2011] N. Houlsby, F. Huszár, Z. Ghahramani, M. Lengyel. Bayesian active
   learning for classification and preference learning. arXiv 1112.5745, 2011.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from caveat import _validation
from caveat._random import random_uniform, stream_key
from caveat._upward import display
from caveat.errors import DrawsNotKeptError, NoAnswerError
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

    def log_prob(self, y: Any) -> Tensor:
        """Log probability of observed classes under ``probs``.

        Parameters
        ----------
        y : Tensor or array of integers, shape (batch, *extra)
            Class numbers from 0.

        Returns
        -------
        Tensor, shape (batch, *extra)
            One for each label, not summed over ``extra``.
        """
        *shape, n_classes = self.probs.shape
        labels = _validation.as_tensor(y)
        y = _validation.class_labels(labels, shape, n_classes).to(self.probs.device)
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

    def _named_classes(
        self, columns: dict[str, Any], classes: Sequence[Any] | None
    ) -> dict[str, Any]:
        if classes is None:
            return columns
        names = _validation.class_names(classes, self.probs.shape[-1])
        found = {}
        for column, values in columns.items():
            head, _, last = column.rpartition("_")
            if column == "label" or column.startswith("label_"):
                found[column] = np.array(names, dtype=object)[values]
            elif head.startswith(("probs", "mean_error")):
                found[f"{head}_{names[int(last)]}"] = values
            else:
                found[column] = values
        return found

    def plot(self, kind: str | None = None, *, ax: Any = None, **style: Any) -> Any:
        """Draw the probabilities: of every draw, as bars, or as maps of pixels.

        Parameters
        ----------
        kind : str, optional
            ``"draws"``, a point for each draw, row and class; ``"bars"``, a bar for
            each row and class, also where no draws are kept; ``"maps"``, of outputs of
            shape (height, width): label, entropy and mutual information of one row. By
            default maps of pictures, else draws where they are kept, else bars.
        ax : Axes, optional
            Where to draw (several of them for maps); by default a new figure, with
            names of its axes and a legend.
        **style
            As for ``from_predictive`` of the display: ``classes=``, ``names=`` and
            ``inputs=`` for draws; ``classes=``, ``names=``, ``level=`` and ``row=`` for
            bars; ``row=`` and ``names=`` for maps.

        Returns
        -------
        caveat.evaluation.SoftmaxScatterDisplay, ClassBarsDisplay or MapDisplay
            Drawn, with ``ax_`` and ``figure_``.
        """
        known = ("draws", "bars", "maps")
        kind = self._kind() if kind is None else _validation.one_of("kind", kind, known)
        if kind == "draws" and style.get("classes") is None:
            peaks = self.probs.reshape(-1, self.probs.shape[-1]).amax(0)
            style["classes"] = sorted(peaks.argsort(descending=True)[:5].tolist())
        if kind == "bars" and self.probs.ndim == 3:
            style.setdefault("row", 0)  # its labels stand side by side
        if kind == "maps":
            drawn = display("caveat.evaluation.maps:MapDisplay")
        elif kind == "bars":
            drawn = display("caveat.evaluation.bars:ClassBarsDisplay")
        else:
            drawn = display("caveat.evaluation.displays:SoftmaxScatterDisplay")
        found = drawn.from_predictive(self, ax=ax, **style)
        if ax is None and kind == "draws":
            what = "logit" if style.get("inputs") else "probability"
            found.ax_.set(xlabel="row", ylabel=f"{what}, a point per draw")
            found.ax_.xaxis.get_major_locator().set_params(integer=True)
            legend = found.ax_.legend(
                loc="lower center",
                bbox_to_anchor=(0.5, 1.0),  # above, where no point can be
                ncols=5,
                markerscale=2,
                fontsize="small",
                frameon=False,
            )
            for handle in legend.legend_handles:
                handle.set_alpha(1.0)
        return found

    def _kind(self) -> str:
        """What is drawn unless something else is asked for."""
        if self.probs.ndim > 2:
            return "maps" if self.probs.ndim > 3 else "bars"
        try:
            return "draws" if len(self.draws) > 1 else "bars"
        except (DrawsNotKeptError, NoAnswerError):
            return "bars"

    def _facts(self) -> dict[str, str]:
        counts = np.bincount(
            self.label.reshape(-1).numpy(force=True), minlength=self.probs.shape[-1]
        )
        most = np.argsort(-counts, kind="stable")[:5]
        labels = ", ".join(f"{c}: {counts[c]}" for c in most if counts[c])
        return {
            "labels, most frequent first": labels,
            "Monte Carlo error of probs": f"at most {self.mean_error.max().item():.2g}",
        }

    def _highlights(self) -> dict[str, Tensor]:
        return {
            "largest probability": self.probs.amax(-1),
            "entropy": self.entropy,
            "mutual information": self.mutual_information,
        }
