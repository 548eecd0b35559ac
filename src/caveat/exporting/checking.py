"""An exported graph is compared with Caveat before anybody gets it."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from caveat._random import signed
from caveat.errors import UnsupportedModelError
from caveat.exporting.drawing import SiteNoise
from caveat.exporting.subjects import ExportSubject, few_rows
from caveat.sampling.inputs import Batch
from caveat.sampling.noise import Mask

TOLERANCE = 1e-5

# (tensors of a batch, seed, number of draws) -> answers
Run = Callable[[Batch, int, int], Sequence[Tensor]]

_DIFFERS = """The graph of {name} was not written: its {output!r} differs from that of
Caveat by {gap:.3g} (largest value {size:.3g}) for {rows} rows, seed {seed} and {draws}
draws. An operation of the model means something else where the graph runs."""

_BITS = """The graph of {name} was not written: the noise at {site!r} is not that of
Caveat. Where the graph runs, whole numbers of 64 bits are computed in another way."""


def check_answers(
    subject: ExportSubject, batch: Batch, names: Sequence[str], run: Run
) -> None:
    """Compare answers for the example and for other rows, seeds and draws."""
    other = few_rows(batch, batch.rows + 1)
    for own, seed, draws in ((batch, subject.seed, 21), (other, subject.seed + 1, 3)):
        truth = subject.truth(own, seed, draws)
        for name, found in zip(names, run(own, seed, draws), strict=True):
            _compare(subject, name, found, truth[name], (own.rows, seed, draws))


def check_noise(
    subject: ExportSubject,
    sites: Sequence[SiteNoise],
    found: Sequence[Tensor],
    draws: range,
) -> None:
    """Compare the noise of some draws: masks bit by bit, numbers to rounding."""
    for site, values in zip(sites, found, strict=True):
        spec = replace(site.spec, name=site.stream)
        seed = signed(subject.seed + site.offset)
        expected = spec.sample(seed, draws)
        exact = isinstance(spec.law, Mask)
        same = values.shape == expected.shape and (
            torch.equal(values, expected)
            if exact
            else torch.allclose(values, expected, rtol=1e-5, atol=1e-6)
        )
        if not same:
            name = type(subject.sampler.model).__name__
            raise UnsupportedModelError(_BITS.format(name=name, site=site.spec.name))


def _compare(
    subject: ExportSubject,
    output: str,
    found: Tensor,
    expected: Tensor,
    call: tuple[int, int, int],
) -> None:
    rows, seed, draws = call
    if found.shape != expected.shape:
        gap = size = float("inf")
    else:
        one, two = found.to(torch.float64), expected.to(torch.float64)
        finite = two[torch.isfinite(two)]
        if expected.dtype == torch.float64 and finite.numel():
            finite = finite - finite.mean()  # so exact that an offset does not count
        size = float(finite.abs().max()) if finite.numel() else 0.0
        if output == "label":
            gap = float((one != two).to(torch.float64).mean())
            size = gap  # ties may fall either way
        elif torch.allclose(
            one, two, rtol=0.0, atol=TOLERANCE * max(1.0, size), equal_nan=True
        ):
            return
        else:
            gap = float((one - two).abs().nan_to_num(nan=float("inf")).max())
        if output == "label" and gap <= 0.01:
            return
    raise UnsupportedModelError(
        _DIFFERS.format(
            name=type(subject.sampler.model).__name__,
            output=output,
            gap=gap,
            size=size,
            rows=rows,
            seed=seed,
            draws=draws,
        )
    )
