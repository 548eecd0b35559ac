"""Every model of the zoo against the plain loop, and our draws against themselves."""

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

import caveat
from tests.sampling.comparing import (
    SEED,
    assert_close,
    assert_same_distribution,
    assert_uncorrelated,
    draws_of,
    nth,
    over_zoo,
    refusal_allowed,
    same_numbers,
    structure,
)
from tests.zoo.models import BY_NAME
from tests.zoo.plain_loop import plain_loop


@over_zoo()
def test_draws_have_the_distribution_of_the_plain_loop(specimen):
    ours = draws_of(specimen, specimen.n_draws)
    assert_same_distribution(ours, plain_loop(specimen, specimen.n_draws, seed=1))


@pytest.mark.slow
@over_zoo()
def test_distribution_of_the_plain_loop_with_power(specimen):
    """Enough draws to notice a variance that is off by a quarter."""
    n_draws = 12 * specimen.n_draws
    ours = draws_of(specimen, n_draws)
    assert_same_distribution(ours, plain_loop(specimen, n_draws, seed=2))


@over_zoo(where=lambda s: s.row_wise and s.noise_has_rows)
def test_independent_masks_have_the_same_marginals_and_differ_by_row(specimen):
    rows, n_draws = [0, 0, 1], min(specimen.n_draws, 150)
    ours = draws_of(specimen, n_draws, rows=rows, shared=False)
    assert_same_distribution(ours, plain_loop(specimen, n_draws, rows=rows, seed=1))
    drawn = next(x for x in ours if x.std(0).max() > 0)
    assert_uncorrelated(drawn[:, 0], drawn[:, 1])


@over_zoo(where=lambda s: s.row_wise and s.fixed_sites)
def test_rows_share_their_function(specimen):
    """One ω per draw: subsets, orders and repetitions of rows change nothing."""
    base = draws_of(specimen, 4)
    for rows in ([2], [3, 0, 0]):
        ours = draws_of(specimen, 4, rows=rows)
        expected = [x[:, rows] for x in base]
        assert_close(ours, expected, specimen.rounding, f"rows {rows}")


@over_zoo(where=lambda s: s.row_wise and s.fixed_sites)
def test_equal_rows_are_drawn_as_one(specimen):
    """A batch that repeats one row does not show where its rows lie."""
    once, repeated = (draws_of(specimen, 4, rows=[1] * n) for n in (1, 4))
    expected = [x.expand(-1, 4, *x.shape[2:]) for x in once]
    assert_close(repeated, expected, specimen.rounding)


@over_zoo(where=lambda s: s.row_wise and s.fixed_sites)
def test_batch_size_is_invisible(specimen):
    rows = [0, 1, 2, 3, 4, 5]
    whole = draws_of(specimen, 3, rows=rows)
    parts = draws_of(specimen, 3, rows=rows, batch_size=4)
    assert_close(parts, whole, specimen.rounding)


@over_zoo()
def test_function_is_the_draw_of_that_number(specimen):
    mc = caveat.MCDropout(specimen.build(), seed=SEED)
    draws = draws_of(specimen, 5)
    args, kwargs = specimen.rows()
    with torch.no_grad():
        once = specimen.tensors(mc.function(3)(*args, **kwargs))
    assert_close(once, nth(draws, 3), specimen.rounding)


def runs_with_gradients(specimen) -> bool:
    args, kwargs = specimen.rows()
    try:
        specimen.build()(*args, **kwargs)
    except RuntimeError:
        return False
    return True


@over_zoo()
def test_gradients_do_not_change_a_function_or_a_block(specimen):
    if not runs_with_gradients(specimen):
        pytest.skip("the model itself cannot run with gradients")
    draws = draws_of(specimen, 2)
    model = specimen.build()
    args, kwargs = specimen.rows()
    once = caveat.MCDropout(model, seed=SEED).function(1)(*args, **kwargs)
    assert_close(detached(specimen, once), nth(draws, 1), specimen.rounding, "function")
    with caveat.stochastic(model, seed=SEED):
        for t in range(2):
            args, kwargs = specimen.rows()
            once = model(*args, **kwargs)
            found = detached(specimen, once)
            assert_close(found, nth(draws, t), specimen.rounding, f"call {t}")


def detached(specimen, output) -> list[torch.Tensor]:
    return [x.detach() for x in specimen.tensors(output)]


@over_zoo()
def test_sampling_block_gives_the_same_draws(specimen):
    draws = draws_of(specimen, 3)
    model = specimen.build()
    with torch.no_grad(), caveat.stochastic(model, seed=SEED):
        for t in range(3):
            args, kwargs = specimen.rows()
            once = specimen.tensors(model(*args, **kwargs))
            assert_close(once, nth(draws, t), specimen.rounding, f"call {t}")


@over_zoo()
def test_seed_and_number_of_draws(specimen):
    """More draws begin with the fewer; the seed decides them all."""
    five, nine = draws_of(specimen, 5), draws_of(specimen, 9)
    assert_close([x[:5] for x in nine], five, specimen.rounding, "first five of nine")
    assert same_numbers(draws_of(specimen, 5), five)
    assert not same_numbers(draws_of(specimen, 5, seed=SEED + 1), five)


@over_zoo()
def test_draws_differ_from_each_other(specimen):
    draws = torch.cat([x.double().flatten(1) for x in draws_of(specimen, 40)], 1)
    assert len(draws.unique(dim=0)) > 1  # one of them has a single bit of noise


@over_zoo()
def test_output_keeps_its_structure(specimen):
    once = specimen.evaluated()
    args, kwargs = specimen.rows()
    with refusal_allowed(specimen):
        draws = caveat.MCDropout(specimen.build()).draws(*args, n_draws=2, **kwargs)
    found, expected = specimen.read(draws), specimen.read(once)
    assert type(draws) is type(once)
    assert structure(found) == structure(expected)
    for many, one in zip(*map(pytree.tree_leaves, (found, expected)), strict=True):
        if isinstance(one, torch.Tensor):
            assert many.shape == (2, *one.shape)
            assert many.dtype == one.dtype


@over_zoo(where=lambda s: s.row_wise)
def test_training_flags_do_not_matter(specimen):
    expected = draws_of(specimen, 3)
    for choose in (lambda i: True, lambda i: i % 2 == 0):
        model = specimen.build()
        for i, module in enumerate(model.modules()):
            module.training = choose(i)
        args, kwargs = specimen.rows()
        draws = caveat.MCDropout(model, seed=SEED).draws(*args, n_draws=3, **kwargs)
        assert_close(specimen.tensors(draws), expected, specimen.rounding)


@over_zoo(where=lambda s: s.sites is not None)
def test_inspect_finds_every_site(specimen):
    args, kwargs = specimen.rows()
    with refusal_allowed(specimen):
        sites = caveat.audit(specimen.build(), *args, **kwargs)
    assert len(sites) == specimen.sites, str(sites)
    assert any(site.fires_in_eval for site in sites) == specimen.fires_in_eval
    assert 0.0 <= sites.prefix_share <= 1.0
    paths = {name.replace("_orig_mod.", "") for name, _ in modules_of(specimen)}
    assert {site.path.replace("_orig_mod.", "") for site in sites} <= paths


def modules_of(specimen):
    """Paths as torch writes them, and those of modules in a plain list."""
    model = specimen.build()
    yield from model.named_modules()
    hidden = getattr(model, "layers", None)
    if isinstance(hidden, list):
        yield from ((f"layers[{i}]", module) for i, module in enumerate(hidden))


@over_zoo("mlp", "encoder_layer", "lstm", "bert_sdpa", "functional", "sdpa")
def test_inspect_says_where_what_and_how_much(specimen):
    args, kwargs = specimen.rows()
    sites = caveat.audit(specimen.build(), *args, **kwargs)
    table = str(sites)
    for site in sites:
        assert site.path in table
        assert site.kind
        assert site.kind in table
        assert 0.0 < site.rate < 1.0
        assert all(isinstance(size, int) for size in site.mask_shape)


def test_inspect_reports_rates_paths_and_mask_shapes():
    model = nn.Sequential(
        nn.Linear(3, 4), nn.Dropout(0.25), nn.Conv1d(1, 2, 1), nn.Dropout1d(0.5)
    )
    model.insert(2, nn.Unflatten(1, (1, 4)))
    sites = caveat.audit(model.eval(), torch.ones(5, 3))
    assert [site.path for site in sites] == ["1", "4"]
    assert [site.rate for site in sites] == [0.25, 0.5]
    assert sites[0].mask_shape == (1, 4)
    assert sites[1].mask_shape == (1, 2, 1)
    assert not any(site.fires_in_eval for site in sites)


def test_prefix_share_is_large_for_head_dropout_and_zero_for_input_dropout():
    body = [nn.Linear(64, 64), nn.ReLU()] * 4
    head = nn.Sequential(*body, nn.Dropout(0.5), nn.Linear(64, 1))
    early = nn.Sequential(nn.Dropout(0.5), *body, nn.Linear(64, 1))
    x = torch.ones(256, 64)
    assert caveat.audit(head, x).prefix_share > 0.5
    assert caveat.audit(early, x).prefix_share < 0.3


@over_zoo("mlp", "lstm", "sdpa", "branches", "gaussian_noise", "head_dropout")
def test_draws_of_high_number(specimen):
    """Draws are made in blocks; a block's end must not show."""
    mc = caveat.MCDropout(specimen.build(), seed=SEED)
    draws = draws_of(specimen, 520)
    for t in (63, 64, 255, 256, 511, 512, 519):
        args, kwargs = specimen.rows()
        with torch.no_grad():
            once = specimen.tensors(mc.function(t)(*args, **kwargs))
        assert_close(once, nth(draws, t), specimen.rounding, f"draw {t}")


@over_zoo("mlp", "lstm", "sdpa", "branches", "autocast")
def test_ambient_modes_do_not_matter(specimen):
    """Inference mode around us changes nothing."""
    expected = draws_of(specimen, 3)
    with torch.inference_mode():
        assert_close(draws_of(specimen, 3), expected, specimen.rounding)


def test_blocks_nest_and_do_not_mix():
    specimen = BY_NAME["mlp"]
    first, second = specimen.build(), specimen.build()
    (x,), _ = specimen.rows()
    one, two = (caveat.MCDropout(first, seed=s).draws(x, n_draws=2) for s in (1, 2))
    with torch.no_grad(), caveat.stochastic(first, seed=1):
        found = [first(x)]
        with caveat.stochastic(first, seed=2), caveat.stochastic(second, seed=1):
            found += [first(x), second(x)]
            found += [caveat.MCDropout(first, seed=2).draws(x, n_draws=1)[0]]
        found += [first(x)]
    assert_close(found, [one[0], two[0], one[0], two[0], one[1]], 1e-6)


@over_zoo("mlp", "lstm", "branches", "hooked", "compiled", "gradient_inside")
def test_models_are_not_kept_alive(specimen):
    model = specimen.build()
    args, kwargs = specimen.rows()
    caveat.MCDropout(model, seed=SEED).draws(*args, n_draws=3, **kwargs)
    with torch.no_grad(), caveat.stochastic(model, seed=SEED):
        model(*args, **kwargs)
    alive = weakref.ref(model)
    del model
    gc.collect()
    assert alive() is None


@over_zoo("mlp", "functional", "lstm", "encoder_layer", "heads_folded_slow")
def test_gradients_flow_in_a_sampling_block(specimen):
    """The gradient is that of the drawn function: compare finite differences."""
    model = specimen.build().double()
    args, kwargs = specimen.rows()
    args = [x.double() for x in args]
    weight = next(p for p in model.parameters() if p.ndim == 2)

    def loss() -> torch.Tensor:
        with caveat.stochastic(model, seed=SEED):
            return model(*args, **kwargs).square().sum()

    (slope,) = torch.autograd.grad(loss(), weight)
    place = divmod(int(slope.abs().argmax()), slope.shape[1])
    step = 1e-6
    with torch.no_grad():
        weight[place] += step
        higher = loss()
        weight[place] -= 2 * step
        lower = loss()
    assert slope[place].item() == pytest.approx(
        ((higher - lower) / (2 * step)).item(), rel=1e-4
    )


class Jitter(nn.Module):
    """Random by its own flag, which is not called ``training``."""

    def __init__(self, size: float):
        super().__init__()
        self.size, self.active = size, False

    def forward(self, x):
        return x + self.size * torch.randn_like(x) if self.active else x


def test_registered_noise_is_switched_on_in_private():
    caveat.register_noise(
        Jitter,
        kind="jitter",
        rate=lambda module: module.size,
        switch=lambda module: setattr(module, "active", True),
    )
    model = nn.Sequential(nn.Linear(2, 3), Jitter(0.5)).eval()
    x = torch.ones(4, 2)
    draws = caveat.MCDropout(model, seed=0).draws(x, n_draws=400)
    assert draws.std(0).mean().item() == pytest.approx(0.5, abs=0.1)
    assert model[1].active is False
    (site,) = caveat.audit(model, x)
    assert (site.path, site.kind, site.rate) == ("1", "jitter", 0.5)
