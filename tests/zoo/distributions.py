"""Laws of torch other than uniform and normal ones, and other ways to ask for noise."""

from collections.abc import Callable

import torch
import torch.distributions as D
import torch.nn.functional as F
from torch import Tensor, nn

from tests.zoo.feedforward import Between, X
from tests.zoo.specimen import Specimen, features, tokens


class Draws(Between):
    """What stands between the layers draws by ``how``."""

    def __init__(self, how: Callable[[Tensor], Tensor]):
        super().__init__()
        self.how = how

    def noise(self, h):
        return self.how(h)


def positive(h: Tensor) -> Tensor:
    return F.softplus(h) + 0.5


FILLED = {
    "log_normal_": lambda h: h + torch.empty_like(h).log_normal_(0.0, 0.3),
    "random_": lambda h: h + torch.empty(h.shape, dtype=torch.long).random_(5),
    "bernoulli_bool": lambda h: h.masked_fill(
        torch.empty(h.shape, dtype=torch.bool).bernoulli_(0.3), 0.0
    ),
    "bernoulli_integers": lambda h: h * torch.empty(h.shape).long().bernoulli_(0.7),
}
SAMPLED = {
    "poisson": lambda h: torch.poisson(positive(h)),
    "binomial": lambda h: torch.binomial(torch.full_like(h, 4.0), h.sigmoid()),
    "multinomial": lambda h: F.one_hot(
        torch.multinomial(h.softmax(-1), 2).amin(-1), h.shape[1]
    ).float(),
    "categorical": lambda h: h * D.Categorical(logits=h).sample()[:, None],
    "gamma": lambda h: D.Gamma(positive(h), 2.0).rsample(),
    "dirichlet": lambda h: D.Dirichlet(positive(h)).rsample(),
    "negative_binomial": lambda h: D.NegativeBinomial(3.0, logits=h - 1).sample(),
}


def drawing(name: str, how: Callable[[Tensor], Tensor], **options) -> Specimen:
    options = {"n_draws": 150, "fires_in_eval": True} | options
    return Specimen(name, lambda: Draws(how), X, **options)


class HardAttention(nn.Module):
    """One place of each row and head: the rows are folded where it draws."""

    def __init__(self):
        super().__init__()
        self.score, self.last = nn.Linear(3, 2), nn.Linear(6, 1)

    def forward(self, x):
        place = D.Categorical(logits=self.score(x).transpose(1, 2)).sample()
        chosen = x.gather(1, place[..., None].expand(-1, -1, x.shape[2]))
        return self.last(chosen.flatten(1))


class Decodes(nn.Module):
    """Samples two tokens, and goes on with them."""

    def __init__(self):
        super().__init__()
        self.embed, self.last = nn.Embedding(7, 4), nn.Linear(4, 7)

    def forward(self, x):
        for _step in range(2):
            weights = self.last(self.embed(x).mean(1)).softmax(-1)
            x = torch.cat([x, torch.multinomial(weights, 1)], 1)
        return self.last(self.embed(x).mean(1))


class CopiesWithNoise(Between):
    """Three copies of the batch, each with noise like its numbers."""

    def noise(self, h):
        copies = h.repeat(3, 1)
        noisy = copies + torch.randn_like(copies)
        return noisy.view(3, *h.shape).logsumexp(0)


class Quasi(Between):
    """Scrambled Sobol points, which torch makes in memory where nobody sees it."""

    def noise(self, h):
        points = torch.quasirandom.SobolEngine(h.shape[1], scramble=True)
        return h + points.draw(4)[2]


SPECIMENS = [
    *[drawing(f"filled_{name}", how) for name, how in FILLED.items()],
    *[drawing(f"sampled_{name}", how) for name, how in SAMPLED.items()],
    Specimen(
        "hard_attention", HardAttention, features(4, 3), n_draws=200, fires_in_eval=True
    ),
    Specimen(
        "decodes_by_sampling",
        Decodes,
        lambda n: ((tokens(n, length=3, vocabulary=7),), {}),
        n_draws=200,
        fires_in_eval=True,
    ),
    Specimen("copies_with_noise", CopiesWithNoise, X, n_draws=200, fires_in_eval=True),
    Specimen("sobol", Quasi, X, n_draws=200, fires_in_eval=True, noise_has_rows=False),
]
