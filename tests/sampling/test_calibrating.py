"""A precision that is fitted on calibration rows."""

import math

import pytest
import torch
from torch import nn

from caveat.errors import InputTypeError, ParameterError
from caveat.evaluation import calibrate
from caveat.sampling import MCDropout

N = 4000


def net(outputs: int = 1) -> nn.Module:
    return nn.Sequential(
        nn.Linear(2, 20), nn.Tanh(), nn.Dropout(0.1), nn.Linear(20, outputs)
    )


def rows(model: nn.Module, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs, and what a function draw gives there with noise of a known size."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, 2, generator=generator)
    with torch.no_grad():
        f = MCDropout(model, seed=9).regress(x, precision=1.0, n_draws=200).mean
    return x, f + noise * torch.randn(f.shape, generator=generator)


def test_it_is_that_of_calibrate() -> None:
    model = net()
    x, y = rows(model, torch.tensor([0.5]))
    mc = MCDropout(model, seed=0)
    found = mc.regress(x[:5], precision="fit", calibration=(x, y))
    held_out = mc.regress(x, precision=1.0)
    expected = calibrate(held_out, y).apply(held_out).precision[0, 0].item()
    assert found.precision.shape == (5, 1)
    assert found.precision[0, 0].item() == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("noise", [1e-3, 1.0, 1e4])
def test_the_noise_is_found_in_any_units(noise: float) -> None:
    """Up to its sampling error, and less than all of the residual variance."""
    model = net()
    for parameter in model.parameters():
        parameter.data.mul_(1e-3 * min(noise, 1.0))  # hardly any spread of the draws
    x, y = rows(model, torch.tensor([noise]))
    found = MCDropout(model, seed=0).regress(x, precision="fit", calibration=(x, y))
    got = found.noise_variance[0, 0].item() ** 0.5
    error = noise / math.sqrt(2 * N)  # of a standard deviation
    assert abs(got - noise) < 5 * error + 1e-3 * noise


def test_outputs_have_precisions_of_their_own() -> None:
    model = net(2)
    x, y = rows(model, torch.tensor([0.01, 100.0]))
    found = MCDropout(model, seed=0).regress(x[:1], precision="fit", calibration=(x, y))
    first, second = found.noise_variance[0].sqrt().tolist()
    assert second == pytest.approx(100.0, rel=5 / math.sqrt(2 * N) + 1e-3)
    alone = MCDropout(model, seed=0).regress(
        x[:1], precision="fit", calibration=(x, y[:, :1]), output=lambda f: f[:, :1]
    )
    assert first == pytest.approx(alone.noise_variance.sqrt().item(), rel=2e-3)


def test_more_is_known_than_without() -> None:
    """Held-out rows are more probable than under a precision ten times off."""
    model = net()
    x, y = rows(model, torch.tensor([0.3]))
    mc = MCDropout(model, seed=0)
    found = mc.regress(x[:2000], precision="fit", calibration=(x[2000:], y[2000:]))
    tau = found.precision[0, 0].item()
    score = found.log_prob(y[:2000]).mean()
    for factor in (0.1, 10.0):
        other = mc.regress(x[:2000], precision=factor * tau).log_prob(y[:2000]).mean()
        assert score > other


def test_what_is_missing_is_said() -> None:
    mc, x = MCDropout(net(), seed=0), torch.zeros(3, 2)
    with pytest.raises(InputTypeError, match=r"(?s)precision=\"fit\", calibration="):
        mc.regress(x)
    with pytest.raises(InputTypeError, match=r"calibration=\(x, y\).*Got nothing"):
        mc.regress(x, precision="fit")
    with pytest.raises(InputTypeError, match="Got Tensor"):
        mc.regress(x, precision="fit", calibration=x)
    with pytest.raises(ParameterError, match=r"or 'fit'\. Got 'best'"):
        mc.regress(x, precision="best")
    with pytest.raises(ParameterError, match="leave one of them out"):
        mc.regress(x, precision=1.0, calibration=(x, x))


def test_rows_without_any_error_tell_nothing() -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    for parameter in model.parameters():
        parameter.data.zero_()
    x = torch.ones(6, 2)
    with pytest.raises(ParameterError, match="without any error"):
        MCDropout(model).regress(x, precision="fit", calibration=(x, torch.zeros(6, 1)))
