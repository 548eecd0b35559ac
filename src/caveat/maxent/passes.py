"""Running a model once for its latent sites, and again with masks.

The first run shows the latent sites to whatever runs the model and hides the
observed ones; every later run is hidden altogether, takes all values from the first
and is asked for the distributions of the observed sites.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import jax.numpy as jnp
from numpyro import handlers
from numpyro.primitives import Messenger

from caveat.errors import NoStochasticSiteError, ParameterError, UnsupportedModelError
from caveat.maxent.markers import Array, Marker, answering

Model: TypeAlias = Callable[..., Any]
Masks: TypeAlias = Mapping[str, Any]

_REPLAYED = {"sample", "param", "plate", "mutable"}


@dataclass(frozen=True)
class Observation:
    """An observed site under given masks: its distribution, value and weight."""

    fn: Any
    value: Any
    scale: Any
    plates: tuple[Any, ...]

    def log_prob(self) -> Array:
        """Log-probability of each element, without the scale of subsampling."""
        return jnp.asarray(self.fn.log_prob(self.value))

    def weighted(self, log_prob: Array) -> Array:
        """``log_prob`` times the scale, summed to a scalar."""
        scale = 1.0 if self.scale is None else self.scale
        return jnp.sum(scale * log_prob)


class _Keys(Messenger):  # type: ignore[misc]
    """Hand out the random keys of an earlier run again, or note them down."""

    def __init__(self, replayed: list[Any] | None = None) -> None:
        super().__init__()
        self.noted: list[Any] = []
        self._left = list(replayed or ())

    def process_message(self, msg: dict[str, Any]) -> None:
        if msg["type"] == "prng_key" and self._left:
            msg["value"], msg["stop"] = self._left.pop(0), True

    def postprocess_message(self, msg: dict[str, Any]) -> None:
        if msg["type"] == "prng_key":
            self.noted.append(msg["value"])


@dataclass
class MarkerCollector:
    """Collects the markers that a run meets, and leaves their values alone."""

    markers: dict[str, Marker] = field(default_factory=dict)

    def __call__(self, marker: Marker) -> None:
        if marker.name in self.markers:
            raise ParameterError(
                f"Every marker must have a name of its own. Got {marker.name!r} "
                f"twice; call one of them dropout({marker.name + '2'!r}, …)."
            )
        self.markers[marker.name] = marker


@dataclass(frozen=True)
class Rerun:
    """A model with its latent values fixed: masks in, observed sites out."""

    model: Callable[[], Any]
    values: dict[str, Any]
    keys: list[Any]
    markers: tuple[Marker, ...]
    subsampled: bool
    result: Any

    def __call__(self, masks: Masks) -> dict[str, Observation]:
        """The observed sites when the markers named in ``masks`` are masked."""
        with (
            handlers.block(),
            handlers.seed(rng_seed=0),  # asked for by scans, though nothing is drawn
            _Keys(self.keys),
            handlers.trace() as trace,
            handlers.substitute(data=self.values),
            answering(lambda marker: masks.get(marker.name)),
        ):
            self.model()
        sites = {n: s for n, s in trace.items() if s["type"] == "sample"}
        self._check_replayed(sites)
        return {
            name: Observation(
                site["fn"],
                site["value"],
                site["scale"],
                tuple(site["cond_indep_stack"]),
            )
            for name, site in sites.items()
            if site["is_observed"]
        }

    def _check_replayed(self, sites: dict[str, Any]) -> None:
        for name, site in sites.items():
            if not site["is_observed"] and name not in self.values:
                raise UnsupportedModelError(
                    f"The latent site {name!r} appears only when values are dropped. "
                    f"The latent sites of a model must not depend on its masks."
                )


def first_run(model: Model, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Rerun:
    """Run ``model`` with its observed sites hidden; what is needed to run it again."""
    recorder, keys, hidden = MarkerCollector(), _Keys(), set()
    shown: dict[str, dict[str, Any]] = {}

    def observed(msg: dict[str, Any]) -> bool:
        if msg["type"] == "sample" and msg["is_observed"]:
            hidden.add(msg["name"])
            return True
        if msg["type"] in _REPLAYED:  # before handlers further out rename or change it
            shown[msg["name"]] = msg
        return False

    with handlers.block(hide_fn=observed), keys, answering(recorder):
        result = model(*args, **kwargs)
    _check(recorder.markers, hidden)
    for name, site in shown.items():
        if site["type"] == "sample":
            _check_latent(name, site)
    return Rerun(
        lambda: model(*args, **kwargs),
        {name: site["value"] for name, site in shown.items()},
        keys.noted,
        tuple(recorder.markers.values()),
        any(_subsamples(site) for site in shown.values()),
        result,
    )


def _subsamples(site: dict[str, Any]) -> bool:
    return site["type"] == "plate" and len(site["value"]) != site["args"][0]


def _check(markers: dict[str, Marker], hidden: set[str]) -> None:
    if not markers:
        raise NoStochasticSiteError(
            "The model marks nothing as dropped. Write, for instance, "
            'w = caveat.maxent.dropout("w", w, rate) inside it.'
        )
    if not hidden:
        raise NoStochasticSiteError(
            "The model observes nothing, so there is no likelihood to be averaged over "
            "masks. Pass the data to it; for predictions use dropped(model) or "
            "weight_averaged(model) instead."
        )


def _check_latent(name: str, site: dict[str, Any]) -> None:
    if site["is_observed"]:
        raise UnsupportedModelError(
            f"The site {name!r} was conditioned outside the transform, where its "
            f"likelihood escapes the masks. Condition first: "
            f"posterior(handlers.condition(model, data), …)."
        )
    if getattr(site["fn"], "is_discrete", False):
        raise UnsupportedModelError(
            f"The latent site {name!r} is discrete. The masks are averaged at fixed "
            f"latent values, which goes wrong if NumPyro sums over them; write the sum "
            f"into the likelihood, as with MixtureSameFamily."
        )
