"""What a file says of itself."""

import json
from collections.abc import Sequence
from typing import Any

import torch

from caveat._version import __version__
from caveat.exporting.building import Built
from caveat.exporting.subjects import ExportSubject

SEED, N_DRAWS = "seed", "n_draws"


def description(
    subject: ExportSubject, built: Built, names: Sequence[str]
) -> dict[str, str]:
    """Names, versions, sites, rates, and what each output means, as texts.

    Parameters
    ----------
    subject : ExportSubject
        What is exported.
    built : Built
        Its graph.
    names : sequence of str
        Of the inputs.

    Returns
    -------
    dict of str to str
        JSON, where a text does not do.
    """
    sampler, summary = subject.sampler, built.chunk.summary
    sites = [
        {
            "name": site.spec.name,
            "kind": site.call.kind,
            "drop_rate": site.call.rate,
            "shape": list(site.spec.shape),
        }
        for site in built.chunk.sites
    ]
    facts: dict[str, Any] = {
        "caveat_version": __version__,
        "torch_version": str(torch.__version__),
        "model": type(sampler.model).__name__,
        "equal_to": subject.equal_to,
        "seed": subject.seed,
        "inputs": [*names, SEED, N_DRAWS],
        "outputs": {name: summary.meanings[name] for name in summary.wanted},
        "sites": sites,
        "masks": "shared by rows" if sampler.shared else "per row",
        "stratified": sampler.stratified,
        "draws_at_a_time": built.chunk.most,
    }
    return {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in facts.items()
    }
