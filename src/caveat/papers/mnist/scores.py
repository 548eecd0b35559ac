"""Uncertainty of the label by five scores, and what each of them is good for."""

from dataclasses import dataclass
from functools import cached_property

import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

from caveat.papers.lenet import as_input, standard_log_probs
from caveat.papers.lenet.predictions import BATCH
from caveat.predictive import CategoricalPredictive
from caveat.sampling import MCDropout

BY_DRAWS = ("entropy", "mutual information", "variation ratio")
BY_SOFTMAX = ("softmax: 1 - largest", "softmax: entropy")
SCORES = (*BY_DRAWS, *BY_SOFTMAX)


@dataclass(frozen=True, eq=False)
class Answers:
    """What a network says about some images."""

    predictive: CategoricalPredictive  # by MC dropout
    softmax: Tensor  # log probabilities (images, 10) of the pass with averaged weights

    @classmethod
    def of(
        cls, net: nn.Sequential, image: Tensor, *, n_draws: int, keep: bool = False
    ) -> "Answers":
        """Ask the network about images of bytes, (images, 28, 28)."""
        predictive = MCDropout(net, seed=0, stratified=False).classify(
            as_input(image), n_draws=n_draws, keep_draws=keep, batch_size=BATCH
        )
        return cls(predictive, standard_log_probs(net, image))

    @property
    def label(self) -> dict[str, Tensor]:
        """The class by each way to predict."""
        return {"MC": self.predictive.label, "standard": self.softmax.argmax(-1)}

    @cached_property
    def scores(self) -> dict[str, Tensor]:
        """How uncertain the label is, by each of ``SCORES``; shape (images,) each."""
        probs = self.softmax.exp()
        found = (
            self.predictive.entropy,
            self.predictive.mutual_information,
            self.predictive.variation_ratio,
            1.0 - probs.amax(-1),
            torch.special.entr(probs).sum(-1),
        )
        return {name: s.double() for name, s in zip(SCORES, found, strict=True)}

    def wrong(self, label: Tensor) -> dict[str, Tensor]:
        """Which labels are wrong, by the way to predict that a score belongs to."""
        wrong = {way: found != label for way, found in self.label.items()}
        return {
            name: wrong["MC" if name in BY_DRAWS else "standard"] for name in SCORES
        }


def share_caught(uncertainty: Tensor, wrong: Tensor, share: float) -> float:
    """The share of errors among the most uncertain ``share`` of the images.

    Parameters
    ----------
    uncertainty : Tensor, shape (images,)
        Ties are broken at random; the answer is the average over ways to do so.
    wrong : Tensor of bool, shape (images,)
        Where the label is wrong.
    share : float
        Of the images, to be set aside.

    Returns
    -------
    float
        NaN if nothing is wrong.

    Examples
    --------
    >>> doubt = torch.tensor([0.9, 0.5, 0.5, 0.1])
    >>> share_caught(doubt, torch.tensor([True, True, False, False]), 0.5)
    0.75
    """
    count = round(share * len(wrong))
    if not count:
        return 0.0
    cut = uncertainty.topk(count).values[-1]
    above, tied = uncertainty > cut, uncertainty == cut
    of_tied = (count - above.sum()) / tied.sum()
    caught = wrong[above].sum() + of_tied * wrong[tied].sum()
    return float(caught / wrong.sum())


def auroc(known: Tensor, strange: Tensor) -> float:
    """Pr(a strange image is more uncertain than a known one), ties counting half."""
    is_strange = torch.cat([torch.zeros(len(known)), torch.ones(len(strange))])
    return float(roc_auc_score(is_strange, torch.cat([known, strange])))
