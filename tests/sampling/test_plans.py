"""What is remembered of a model is true of the model as it is now."""

import threading
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import caveat
from caveat import MCDropout
from caveat.errors import NoStochasticSiteError
from caveat.sampling import plans
from caveat.sampling.inputs import Batch

X = torch.linspace(-1, 1, 12).view(4, 3)


def net(rate: float = 0.5) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = [nn.Linear(3, 8), nn.ReLU(), nn.Dropout(rate), nn.Linear(8, 2)]
    return nn.Sequential(*layers)


def draws(model: nn.Module, x: Tensor = X) -> Tensor:
    return MCDropout(model, seed=0).draws(x, n_draws=20)


def fresh(model: nn.Sequential) -> nn.Sequential:
    """The same layers in a model that nothing is remembered of."""
    return nn.Sequential(*model)


def stochastic(model: nn.Module) -> Tensor:
    with caveat.stochastic(model, seed=0):
        return model(X)


CALLS = {
    "draws": draws,
    "regress": lambda model: MCDropout(model).regress(X, n_draws=3, precision=1.0),
    "classify": lambda model: MCDropout(model).classify(X, n_draws=3),
    "moments": lambda model: MCDropout(model).moments(X),
    "function": lambda model: MCDropout(model).function(0)(X),
    "audit": lambda model: caveat.audit(model, X),
    "stochastic": stochastic,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_model_without_noise_is_not_remembered(call):
    model = net(rate=0.0)
    with pytest.raises(NoStochasticSiteError):
        call(model)
    model[2].p = 0.5
    call(model)


def test_a_rate_after_the_error_gives_the_draws_of_a_new_model():
    model = net(rate=0.0)
    with pytest.raises(NoStochasticSiteError):
        draws(model)
    model[2].p = 0.5
    assert torch.equal(draws(model), draws(fresh(model)))


def test_dropout_inserted_after_the_error():
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    with pytest.raises(NoStochasticSiteError):
        draws(model)
    model.insert(2, nn.Dropout(0.5))
    assert torch.equal(draws(model), draws(fresh(model)))


def test_all_noise_taken_away_is_an_error():
    model = net()
    draws(model)
    model[2].p = 0.0
    with pytest.raises(NoStochasticSiteError):
        draws(model)


@pytest.mark.parametrize("rate", [0.1, 0.9])
def test_a_changed_rate(rate):
    model = net()
    draws(model)
    model[2].p = rate
    assert torch.equal(draws(model), draws(fresh(model)))
    assert [site.rate for site in caveat.audit(model, X)] == [rate]


def test_a_second_site_is_shared_by_rows_as_the_first():
    """Its place among the rows is looked for again, not taken as unknown."""
    model = nn.Sequential(nn.Dropout(0.0), *net())
    draws(model)
    model[0].p = 0.5
    assert torch.equal(draws(model), draws(fresh(model)))
    assert len(caveat.audit(model, X)) == 2


class Turned(nn.Module):
    """Dropout on a tensor whose last axis holds the rows."""

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x.t(), 0.5).t()


def test_a_replaced_part():
    """Of the same path, with the rows elsewhere; as many rows as units fit both."""
    x = torch.linspace(-1, 1, 24).view(8, 3)
    model = net()
    draws(model, x)
    model[2] = Turned()
    assert torch.equal(draws(model, x), draws(fresh(model), x))


def test_a_replaced_part_in_a_plain_list():
    class Listed(nn.Module):
        def __init__(self, parts: nn.Sequential):
            super().__init__()
            self.own = nn.Linear(3, 3)
            self.parts = [(part,) for part in parts]

        def forward(self, x):
            for (part,) in self.parts:
                x = part(x)
            return x

    x = torch.linspace(-1, 1, 24).view(8, 3)
    model, layers = Listed(net()), net()
    draws(model, x)
    layers[2] = Turned()
    model.parts = [(part,) for part in layers]
    assert torch.equal(draws(model, x), draws(Listed(layers), x))


def test_a_hook_that_drops():
    model = net()
    draws(model)
    model[0].register_forward_hook(lambda module, args, output: F.dropout(output, 0.5))
    assert torch.equal(draws(model), draws(fresh(model)))


def plan_of(model: nn.Module) -> plans.Plan:
    return plans.plan_for(model, Batch.of((X,), {}, axis=0, model=model))


def test_a_plan_is_made_once():
    model = net()
    first = plan_of(model)
    assert plan_of(model) is first
    model.train()
    assert plan_of(model) is first  # a copy runs, with flags of its own
    with torch.no_grad():
        model[0].weight.add_(1.0)
    assert plan_of(model) is first


def test_nothing_is_kept_of_what_a_model_was():
    model = net()
    for rate in (0.1, 0.2, 0.3):
        model[2].p = rate
        draws(model)
    assert len(plans._plans[model].by_kind) == 1


class Switched(nn.Module):
    """Random by a switch of its own."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.left = self.right = False

    def forward(self, x: Tensor) -> Tensor:
        x = F.dropout(x, 0.5) if self.left else x
        return F.dropout1d(x, 0.5) if self.right else x


def switch(name: str):
    return lambda module: setattr(module, name, True)


def test_a_class_registered_again_is_switched_anew():
    model = Switched()
    options = {"kind": "switched", "rate": lambda module: 0.5}
    caveat.register_noise(Switched, **options, switch=switch("left"))
    by_element = draws(model)
    assert (by_element == 0).any() and not (by_element == 0).all(-1).all()
    caveat.register_noise(Switched, **options, switch=switch("right"))
    assert torch.equal(draws(model), draws(Switched()))
    caveat.register_noise(Switched, **options, switch=lambda module: None)
    with pytest.raises(NoStochasticSiteError):
        draws(model)


class Inside(nn.Module):
    """Uses autograd for rows that are positive."""

    def __init__(self):
        super().__init__()
        self.net = net()

    def forward(self, x: Tensor) -> Tensor:
        y = self.net(x)
        if x.sum() > 0:
            with torch.enable_grad():
                z = y.detach().requires_grad_()
                return torch.autograd.grad(z.square().sum(), z)[0]
        return y


class Plain(Inside):
    """The same function without autograd."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * self.net(x)


def test_autograd_on_a_path_that_the_plan_has_not_seen():
    x = torch.cat([-X.abs()[:2], 9 * X.abs()])  # the first rows go the other way
    model, plain = Inside(), Plain()
    plain.net = model.net
    expected = draws(plain, x)
    assert torch.allclose(draws(model, x), expected, atol=1e-5)
    other = Inside()
    other.net = model.net
    with caveat.stochastic(other, seed=0), torch.no_grad():
        assert torch.allclose(other(x), expected[0], atol=1e-5)


class InTraining(nn.Module):
    """Uses autograd in training mode alone."""

    def __init__(self):
        super().__init__()
        self.net = net()

    def forward(self, x: Tensor) -> Tensor:
        with torch.set_grad_enabled(self.training):
            return self.net(x)


def test_autograd_in_training_mode():
    model = InTraining()
    assert draws(model).std(0).max() > 0


def test_threads_share_a_plan():
    model = net()
    found: list[Tensor] = []
    threads = [
        threading.Thread(target=lambda: found.append(draws(model))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(torch.equal(found[0], other) for other in found)


class Mixing(nn.Sequential):
    """Rows that see each other."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x - x.mean(0))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_warning_points_to_the_line_of_the_user(call):
    with pytest.warns(caveat.errors.CaveatWarning, match="not independent") as caught:
        call(Mixing(*net()))
    assert {warning.filename for warning in caught} == {__file__}


RATES = {"second": 0.0}  # read by a forward


class Configured(nn.Module):
    """Its second dropout is off until something that is no attribute of it changes."""

    def __init__(self, config):
        super().__init__()
        self.net, self.drop, self.last = net(0.1), nn.Dropout(0.9), nn.Linear(2, 2)
        self.config = config

    def on(self) -> bool:
        return self.config.part.on

    def forward(self, x: Tensor) -> Tensor:
        h = self.net(x)
        return self.last(self.drop(h) if self.on() and self.training else h)


class ByGlobal(Configured):
    def on(self) -> bool:
        return RATES["second"] > 0


def by_closure(model: Configured) -> list[bool]:
    switch = [False]
    model.on = lambda: switch[0]
    return switch


def part(on: bool) -> SimpleNamespace:
    return SimpleNamespace(part=SimpleNamespace(on=on))


def test_an_object_within_a_configuration_is_changed():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Configured(part(False))
    quiet = draws(model)
    model.config.part.on = True
    assert draws(model).var(0).sum() > 2 * quiet.var(0).sum()
    model.config.part.on = False
    assert torch.equal(draws(model), quiet)


def test_what_a_function_closes_over_is_changed():
    model = Configured(part(False))
    switch = by_closure(model)
    quiet = draws(model)
    switch[0] = True
    assert draws(model).var(0).sum() > 2 * quiet.var(0).sum()


def test_a_global_is_changed(monkeypatch):
    model = ByGlobal(None)
    quiet = draws(model)
    monkeypatch.setitem(RATES, "second", 0.9)
    assert draws(model).var(0).sum() > 2 * quiet.var(0).sum()
