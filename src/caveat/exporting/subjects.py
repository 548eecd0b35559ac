"""What is exported: a model with its noise, the draws it has, and their addresses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from caveat.errors import InputTypeError, UnsupportedModelError
from caveat.exporting.drawing import SiteNoise
from caveat.exporting.summaries import (
    DRAWS,
    ClassSummary,
    DrawSummary,
    RegressionSummary,
    answer_dtype,
)
from caveat.predictive import ClassificationPredictive, RegressionPredictive
from caveat.sampling import MCDropout
from caveat.sampling.arguments import call_batch
from caveat.sampling.classes import ClassPicker
from caveat.sampling.engine import Sampler
from caveat.sampling.given import given_inputs
from caveat.sampling.inputs import Batch, telling
from caveat.sampling.outputs import Output, Picker
from caveat.sampling.plans import plan_for
from caveat.sampling.trees import Structure

_DRAWN = """{name} cannot be exported: a drawn value decides what its Python code does
{how}so that each draw may run other operations, and a graph has but one way.
MCDropout follows every way."""

_AUTOGRAD = """{name} cannot be exported: it uses autograd inside its forward, which no
graph for ONNX can do. Compute the gradient outside of the model."""

_HOST = """{name} cannot be exported: it draws from generators of Python or numpy, whose
numbers a graph cannot make. Draw with torch.rand and its kin."""

_DEVICE = """{name} has tensors on {device}; models are exported on the CPU. Pass a copy
of it there: MCDropout(copy.deepcopy(model).cpu(), ...)."""

_SHORT = """{name} has numbers of the type {dtype}, which are rounded in other places
wherever a graph runs, so that it cannot be compared with Caveat. Export a copy in
float32: MCDropout(copy.deepcopy(model).float(), ...), and shorten the file."""

_QUANTISED = """{name} cannot be exported: its part {path!r} ({kind}) is quantised to
whole numbers, and torch's exporter has no graph for that. Export the model from before
it was quantised, and quantise the file (onnxruntime.quantization)."""


@dataclass(frozen=True)
class Question:
    """What shall be answered, in the words of ``regress`` and ``classify``.

    Attributes
    ----------
    outputs : tuple of str
        Names of the answers.
    of_classes : bool
        They are those of a classifier.
    precision : Tensor or None
    level : float
    output : callable, str or None
    class_dim : int or None
    """

    outputs: tuple[str, ...]
    of_classes: bool
    precision: Tensor | None
    level: float
    output: Output | str | None
    class_dim: int | None


class ExportSubject(Protocol):
    """A source of draws that can be exported."""

    @property
    def sampler(self) -> Sampler:
        """The model and how its noise is addressed."""

    @property
    def seed(self) -> int:
        """The seed under which a graph gives the draws that the subject gives."""

    @property
    def equal_to(self) -> str:
        """Which answer of Caveat a graph gives, as one would ask for it."""

    def batch(self, example: Any) -> Batch:
        """An example of its inputs."""

    def readdressed(self, sites: Sequence[SiteNoise]) -> tuple[SiteNoise, ...]:
        """Its sites with the addresses under which it draws."""

    def pick(self, leaves: list[Any], structure: Structure) -> Tensor:
        """The tensor that is read of what the model returns."""

    def summary(self, batch: Batch) -> DrawSummary:
        """What is asked of the draws."""

    def truth(self, batch: Batch, seed: int, n_draws: int) -> dict[str, Tensor]:
        """The answers as Caveat gives them, from the draws alone."""


@dataclass(frozen=True)
class SampledSubject(ExportSubject):
    """A model in an :class:`MCDropout`."""

    mc: MCDropout
    question: Question

    @property
    def sampler(self) -> Sampler:
        return self.mc._sampler

    @property
    def seed(self) -> int:
        return self.mc.seed

    @property
    def equal_to(self) -> str:
        sampler = self.sampler
        how = "seed=seed, analytic=False"  # closed forms are not in a graph
        for name in ("shared", "stratified"):
            how += "" if getattr(sampler, name) else f", {name}=False"
        how += f", batch_dim={self.mc._axis}" if self.mc._axis else ""
        asked = "classify" if self.question.of_classes else "regress"
        return f"MCDropout(model, {how}).{asked}(..., n_draws=n_draws)"

    def batch(self, example: Any) -> Batch:
        args, kwargs = _arguments(example)
        args, named = given_inputs(self.mc.model, args, kwargs)
        return call_batch(self.mc.model, args, dict(named), axis=self.mc._axis)

    def readdressed(self, sites: Sequence[SiteNoise]) -> tuple[SiteNoise, ...]:
        return tuple(sites)

    @property
    def _picker(self) -> Picker:
        asked = self.question
        if asked.of_classes:
            return ClassPicker.of("export", asked.output, asked.class_dim)
        if isinstance(asked.output, str):
            raise InputTypeError(
                f"output must be a function of what the model returns. Got "
                f"{asked.output!r}, which is for outputs of a classifier."
            )
        return Picker("export", asked.output)

    def pick(self, leaves: list[Any], structure: Structure) -> Tensor:
        return self._picker.pick(leaves, structure)

    def summary(self, batch: Batch) -> DrawSummary:
        asked, picker = self.question, self._picker
        session = self.sampler.session(batch)
        leaves, structure = session.first_leaves, session.structure
        first = picker.pick(leaves, structure)
        dtype = answer_dtype(first.dtype)
        if not isinstance(picker, ClassPicker):
            settings = asked.precision, asked.level
            return RegressionSummary(asked.outputs, dtype, *settings)
        self._predictive(batch, self.seed, 2)  # refuses what are no logits
        kind, shape = picker.kind or "logits", tuple(first.shape)
        single = kind in ("logit", "sigmoid")
        if single:
            axis = None if len(shape) == 1 else picker.class_dim or 1
        else:
            axis = picker.axis(shape, leaves, structure)
        return ClassSummary(asked.outputs, dtype, kind, axis)

    def truth(self, batch: Batch, seed: int, n_draws: int) -> dict[str, Tensor]:
        found = self._predictive(batch, seed, n_draws)
        return answers_of(found, self.question)

    def _predictive(self, batch: Batch, seed: int, n_draws: int) -> Any:
        sampler, asked = self.sampler, self.question
        mc = MCDropout(
            sampler.model,
            seed=seed,
            shared=sampler.shared,
            stratified=sampler.stratified,
            batch_dim=self.mc._axis,
            analytic=False,
        )
        args, kwargs = batch.arguments
        how: dict[str, Any] = {"n_draws": n_draws, "output": asked.output}
        if asked.of_classes:
            return mc.classify(*args, **kwargs, **how, class_dim=asked.class_dim)
        tau = 1.0 if asked.precision is None else asked.precision
        return mc.regress(*args, **kwargs, **how, precision=tau)


def answers_of(
    found: RegressionPredictive | ClassificationPredictive, asked: Question
) -> dict[str, Tensor]:
    """The answers of a predictive."""
    answers: dict[str, Tensor] = {}
    for name in asked.outputs:
        if name in ("lower", "upper"):
            assert isinstance(found, RegressionPredictive)
            answers[name] = found.interval(asked.level)[name == "upper"]
        elif name in ("std", "variance") and asked.precision is None:
            assert isinstance(found, RegressionPredictive)
            variance = found.epistemic_variance
            answers[name] = variance.sqrt() if name == "std" else variance
        else:
            answers[name] = getattr(found, DRAWS if name == DRAWS else name)
    return answers


def _arguments(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and named arguments of a call, from what a user may write."""
    if isinstance(example, tuple):
        return example, {}
    if isinstance(example, Mapping):
        return (), dict(example)
    return (example,), {}


def refuse_what_has_no_graph(subject: ExportSubject, batch: Batch) -> None:
    """Say why a model has no graph, where that is known from how it is sampled."""
    model = subject.sampler.model
    name = type(model).__name__
    _refuse_parts(model)
    with telling(batch, model):
        plan = plan_for(model, batch)
        if plan.switches.above_autograd:
            raise UnsupportedModelError(_AUTOGRAD.format(name=name))
        if plan.switches.host_generators:
            raise UnsupportedModelError(_HOST.format(name=name))
        _, run, _ = subject.sampler.planned_pass(plan, batch, 0, record=True)
    transcript = run.recorder.transcript
    checks = any(op.noisy and op.is_check for op in transcript.tape.ops)
    if transcript.escape or checks:
        how = f"({transcript.escape}), " if transcript.escape else ""
        raise UnsupportedModelError(_DRAWN.format(name=name, how=how))


def _refuse_parts(model: nn.Module) -> None:
    name = type(model).__name__
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.device.type != "cpu":
            raise UnsupportedModelError(_DEVICE.format(name=name, device=tensor.device))
        if tensor.dtype in (torch.float16, torch.bfloat16):
            raise UnsupportedModelError(_SHORT.format(name=name, dtype=tensor.dtype))
    for path, part in model.named_modules():
        if "quantized" in type(part).__module__:
            kind = type(part).__name__
            raise UnsupportedModelError(
                _QUANTISED.format(name=name, path=path, kind=kind)
            )


def few_rows(batch: Batch, count: int) -> Batch:
    """As many rows of a batch, over and over if it has fewer."""
    return replace(batch.take([i % batch.rows for i in range(count)]), first_row=0)


def input_names(batch: Batch, taken: Sequence[str]) -> list[str]:
    """A name for each tensor of a batch; "x" if it is the only one."""
    args, kwargs = batch.arguments
    given = dict(zip(batch.positional, args, strict=False)) | kwargs
    tensors = [leaf for leaf in batch.leaves if isinstance(leaf, Tensor)]
    if len(tensors) == 1 and args:
        return ["x"]
    names = {id(value): name for name, value in given.items()}
    found: list[str] = []
    for number, tensor in enumerate(tensors):
        name = names.get(id(tensor), f"input_{number}")
        known = name in (*taken, *found) or name.startswith("caveat_")
        found.append(f"{name}_{number}" if known else name)
    return found


def as_signed_seed(seed: int) -> Tensor:
    """A seed as a number of a graph, of 64 bits."""
    seed &= (1 << 64) - 1
    return torch.tensor(seed - (1 << 64) if seed >> 63 else seed)
