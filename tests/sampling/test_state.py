"""Nothing of the user's changes: not after a call, not after an error in one."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

import caveat
from caveat.errors import UnsupportedModelError
from tests.sampling.comparing import SEED, over_zoo
from tests.sampling.snapshot import Snapshot, all_modules
from tests.zoo.specimen import Inputs, Specimen, tensors


class StopHereError(Exception):
    """Raised by a hook in the middle of a forward."""


Action = Callable[[nn.Module, Inputs], object]


def draw(model: nn.Module, inputs: Inputs) -> object:
    args, kwargs = inputs
    return caveat.MCDropout(model, seed=SEED).draws(*args, n_draws=3, **kwargs)


def draw_independently(model: nn.Module, inputs: Inputs) -> object:
    args, kwargs = inputs
    mc = caveat.MCDropout(model, seed=SEED, shared=False)
    return mc.draws(*args, n_draws=3, **kwargs)


def regress(model: nn.Module, inputs: Inputs) -> object:
    args, kwargs = inputs
    mc = caveat.MCDropout(model, seed=SEED)
    options = {"precision": 2.0, "output": lambda output: tensors(output)[0]}
    return mc.regress(*args, n_draws=3, keep_draws=False, **options, **kwargs)


def audit(model: nn.Module, inputs: Inputs) -> object:
    args, kwargs = inputs
    return caveat.audit(model, *args, **kwargs)


def call_function(model: nn.Module, inputs: Inputs) -> object:
    args, kwargs = inputs
    return caveat.MCDropout(model, seed=SEED).function(2)(*args, **kwargs)


def sample(model: nn.Module, inputs: Inputs) -> object:
    args, kwargs = inputs
    with caveat.stochastic(model, seed=SEED):
        model(*args, **kwargs)
        return model(*args, **kwargs)


ACTIONS: list[Action] = [
    draw,
    draw_independently,
    regress,
    audit,
    call_function,
    sample,
]


def prepared(specimen: Specimen) -> nn.Module:
    """A model with gradients on its parameters, some of them frozen."""
    model = specimen.build()
    for i, parameter in enumerate(model.parameters()):
        if parameter.layout == torch.strided:
            parameter.grad = torch.full_like(parameter, 0.5)
        parameter.requires_grad_(i % 3 != 2)
    return model


def set_flags(model: nn.Module, choose: Callable[[int], bool]) -> None:
    for i, module in enumerate(all_modules(model)):
        module.training = choose(i)


def assert_nothing_changes(
    specimen: Specimen, actions: list[Action], flags: Callable[[int], bool]
) -> None:
    model, inputs = prepared(specimen), specimen.rows()
    set_flags(model, flags)
    before = Snapshot(model, inputs)
    for action in actions:
        try:
            with torch.no_grad():
                action(model, inputs)
        except UnsupportedModelError:
            assert specimen.may_refuse
        before.assert_unchanged(f"after {action.__name__}")


@over_zoo()
def test_nothing_changes(specimen):
    assert_nothing_changes(specimen, ACTIONS, lambda i: False)


@over_zoo()
@pytest.mark.parametrize(
    "flags", [lambda i: True, lambda i: i % 2 == 1], ids=["train", "mixed"]
)
def test_nothing_changes_whatever_the_flags(specimen, flags):
    assert_nothing_changes(specimen, [audit, draw, sample], flags)


@over_zoo("mlp", "lstm", "encoder_layer", "gated_by_parent", "counts_steps", "hooked")
@pytest.mark.parametrize("action", ACTIONS)
def test_nothing_changes_with_gradients_on(specimen, action):
    model, inputs = prepared(specimen), specimen.rows()
    before = Snapshot(model, inputs)
    action(model, inputs)
    before.assert_unchanged(f"after {action.__name__}")


@over_zoo(where=lambda s: not s.reaches_python and s.name != "mutates_input")
def test_a_graph_made_before_can_still_be_differentiated(specimen):
    """Torch notices writes by a counter; ours must not count as the user's."""
    model = specimen.build()
    args, kwargs = specimen.rows()
    try:
        loss = sum(x.square().sum() for x in specimen.tensors(model(*args, **kwargs)))
        torch.autograd.backward(loss, retain_graph=True)
    except RuntimeError:
        pytest.skip("the model itself cannot be differentiated")
    try:
        draw(model, (args, kwargs))
        audit(model, (args, kwargs))
    except UnsupportedModelError:
        assert specimen.may_refuse
    torch.autograd.backward(loss)


def stop_in_leaves(model: nn.Module, *, call: int) -> None:
    """Hooks on all leaf modules that raise at the given call of any of them."""
    calls: list[nn.Module] = []

    def stop(module: nn.Module, args: object, output: object) -> None:
        calls.append(module)
        if len(calls) >= call:
            raise StopHereError

    for module in all_modules(model):
        if not list(module.children()):
            module.register_forward_hook(stop)


@over_zoo()
def test_nothing_changes_when_a_forward_fails(specimen):
    model, inputs = prepared(specimen), specimen.rows()
    stop_in_leaves(model, call=1)
    before = Snapshot(model, inputs)
    for action in ACTIONS:
        with pytest.raises(StopHereError), torch.no_grad():
            action(model, inputs)
        before.assert_unchanged(f"after {action.__name__}")


@over_zoo("branches", "reads_list", "ponders_until", "layer_drop_torch")
@pytest.mark.parametrize("call", [2, 3, 5, 8, 13])
def test_nothing_changes_when_a_later_pass_fails(specimen, call):
    model, inputs = prepared(specimen), specimen.rows()
    stop_in_leaves(model, call=call)
    before = Snapshot(model, inputs)
    args, kwargs = inputs
    with pytest.raises(StopHereError):
        caveat.MCDropout(model, seed=SEED).draws(*args, n_draws=30, **kwargs)
    before.assert_unchanged(f"after an error in call {call}")


@over_zoo("mlp", "encoder", "hooked", "compiled", "aux_when_training")
def test_an_error_in_the_block_leaves_the_model_alone(specimen):
    model, inputs = prepared(specimen), specimen.rows()
    before = Snapshot(model, inputs)
    args, kwargs = inputs
    with (
        pytest.raises(StopHereError),
        torch.no_grad(),
        caveat.stochastic(model, seed=SEED),
    ):
        model(*args, **kwargs)
        raise StopHereError
    before.assert_unchanged("after the block")
    with torch.no_grad():
        model(*args, **kwargs)  # a plain call works again, without noise


@over_zoo("mlp", "functional", "encoder", "lstm", "gated_by_parent", "bert_sdpa")
def test_the_model_is_deterministic_after_a_block(specimen):
    model = specimen.build()
    args, kwargs = specimen.rows()
    with torch.no_grad():
        plain = specimen.tensors(model(*args, **kwargs))
        with caveat.stochastic(model, seed=SEED):
            drawn = specimen.tensors(model(*args, **kwargs))
        again = specimen.tensors(model(*args, **kwargs))
    assert all(map(torch.equal, plain, again))
    assert not torch.equal(plain[0], drawn[0])


@over_zoo("mlp", "lstm", "bert_sdpa")
def test_an_error_in_output_leaves_everything_alone(specimen):
    model, inputs = prepared(specimen), specimen.rows()
    before = Snapshot(model, inputs)
    args, kwargs = inputs

    def fail(output: object) -> torch.Tensor:
        raise StopHereError

    with pytest.raises(StopHereError):
        caveat.MCDropout(model).regress(
            *args, n_draws=3, precision=1.0, output=fail, **kwargs
        )
    before.assert_unchanged("after an error in output=")
