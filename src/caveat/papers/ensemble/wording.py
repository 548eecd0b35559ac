"""What the page says of ensembles: settings, what was chosen, tables, verdicts."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from caveat.papers.ensemble.averages import (
    Average,
    gain,
    passes,
    select,
    share_of_gain,
)
from caveat.papers.ensemble.choosing import LADDERS, is_at_end
from caveat.papers.ensemble.comparison import (
    LONG,
    MC,
    N_MEMBERS,
    SHORT,
    STANDARD,
    TEST,
    VALIDATION,
    EnsembleEffort,
    Result,
)
from caveat.papers.ensemble.networks import (
    BATCH_SIZE,
    HIDDEN,
    LEARNING_RATE,
    LENET,
    MLP,
    Kind,
)
from caveat.papers.lenet import SOLVER
from caveat.papers.page import Part, bullets, flow, holds, table

SIMILAR = 0.1  # of the gap between one plain network and the ensemble
_RATES_OF = {
    MLP: "pixels and of hidden units",
    LENET: "the outputs of both convolutions and of the 500 units",
}


def how_chosen() -> str:
    """The search for settings, the same for all networks."""
    rates, penalties = (
        ", ".join(f"{value:g}" for value in LADDERS[name])
        for name in ("early_rate", "l2_penalty")
    )
    return flow(f"""Settings are chosen by networks of full length on the last training
        images, which these networks do not see: one after the other, λ (and for dropout
        both rates) moves to a neighbouring value while that helps, until no
        neighbour in any direction is. Values: rates {rates}; λ {penalties}. Networks of
        the test learn from all training images.""")


def about(
    name: str, records: Sequence[Result], effort: EnsembleEffort
) -> Iterator[Part]:
    """The part of the page on one kind of network; the results are of this kind."""
    yield f"## {name}"
    yield _settings(select(records, MC, effort.sizes[-1])[0].kind, effort)
    yield flow(f"""Tried, on {effort.n_held_out:,} held-out training images,
        {effort.n_tried} network(s) of each setting (rates are those of
        {_RATES_OF[name]}):""")
    yield table(_trials(records))
    yield _chosen(records)
    yield "Tested:"
    yield table(
        _row(select(records, method, n), effort.length)
        for method in (STANDARD, MC, SHORT, LONG)
        for n in passes(records, method)
    )
    yield _trust(effort.n_replicates)
    yield f"The claim, for {name}:"
    yield bullets(_claims(records))


def brief(results: Sequence[Result]) -> str:
    """What MC dropout gains, in few words."""
    most = passes(results, MC)[-1]
    error, likelihood = (
        share_of_gain(results, most, name) for name in ("error", "log_likelihood")
    )
    return f"""they gain {error:.0%} of what an ensemble of {N_MEMBERS} gains in error
        and {likelihood:.0%} in log-likelihood"""


def _trials(results: Sequence[Result]) -> Iterator[dict[str, str]]:
    """A row per setting, averaged over its networks."""
    tried = [r for r in results if r.part == VALIDATION]
    for kind in dict.fromkeys(r.kind for r in tried):
        own = [r for r in tried if r.kind == kind]
        likelihoods = [r.log_likelihood for r in own]
        yield {
            "network": own[0].method,
            "setting": str(kind),
            "error %": f"{100 * np.mean([r.error for r in own]):.2f}",
            "mean log p": f"{np.mean(likelihoods):.4f}",
            "each": ", ".join(f"{value:.4f}" for value in likelihoods),
        }


def _chosen(results: Sequence[Result]) -> str:
    chosen = list(dict.fromkeys(r.kind for r in results if r.part == TEST))
    ends = [str(kind) for kind in chosen if is_at_end(kind)]
    at_end = f"At an end of what could be tried: {'; '.join(ends)}." if ends else ""
    none = "" if ends else "None of them is at an end of what could be tried."
    return flow(f"""Chosen, by the mean log-likelihood of all networks of a setting:
        {"; ".join(map(str, chosen))}. {at_end}{none} A rate or λ of 0 has nothing
        below.""")


def _where(kind: Kind) -> str:
    """Before which weight layers the chosen network drops, as it was chosen."""
    inputs, first = {
        MLP: ("pixels, before the first weight layer", "the second and the third"),
        LENET: (
            "the outputs of convolutions, before the second and the third weight layer",
            "the last",
        ),
    }[kind.network]
    if kind.early_rate and kind.network == MLP:
        return "before every weight layer, as the theory has it"
    if kind.early_rate:
        return """before every weight layer but the first, which sees the pixels and is
            not Bayesian, as in the released files of paper 001"""
    return f"""before {first}: on {inputs}, other rates than 0 were tried and not
        chosen, so that what stands before is not Bayesian"""


def _row(own: Sequence[Result], length: int) -> dict[str, str]:
    first = own[0]
    return {
        "way to predict": f"{first.method}, {first.n_passes}",
        "cost of training": f"{first.length / length:.2g}",
        "cost of testing": str(first.n_passes),
        "error %": Average.of([r.error for r in own]).shown(3, scale=100),
        "mean log p": Average.of([r.log_likelihood for r in own]).shown(4),
    }


def _trust(n_replicates: int) -> str:
    doubt = 1.0 / math.sqrt(2.0 * (n_replicates - 1))
    return flow(f"""A standard error from {n_replicates} replicates is itself uncertain
        by about {doubt:.0%}, so a very small one may be luck;
        verdicts below are by Student's t.""")


def _claims(results: Sequence[Result]) -> Iterator[str]:
    most = passes(results, MC)[-1]
    times = f"({N_MEMBERS} times the training for the ensemble)"
    few, many = f"T = {N_MEMBERS}", f"T = {most}"
    contests = {
        f"Equal cost of training, {many}": (most, SHORT),
        f"Equal cost of training and of testing, {few}": (N_MEMBERS, SHORT),
        f"Equal cost of testing, {few} {times}": (N_MEMBERS, LONG),
        f"The most of both, {many} {times}": (most, LONG),
    }
    for title, (n_draws, method) in contests.items():
        pair = select(results, MC, n_draws), select(results, method, N_MEMBERS)
        error, likelihood = (gain(*pair, k) for k in ("error", "log_likelihood"))
        yield f"""{title}, MC dropout against the {method} of {N_MEMBERS}: error
            {error.shown(3, scale=100, sign="+")} points better, {error.verdict};
            log-likelihood {likelihood.shown(4, sign="+")} better,
            {likelihood.verdict}."""
    yield _why(results)
    yield _share(results, most)


def _why(results: Sequence[Result]) -> str:
    """What short trainings lose, beside what averaging them wins back."""
    short, long = (select(results, method, 1) for method in (SHORT, LONG))
    lost = gain(long, short, "error")
    won = gain(select(results, SHORT, N_MEMBERS), short, "error")
    return f"""Why short trainings lose: a single one costs {lost.shown(2, scale=100)}
        points of error, and averaging {N_MEMBERS} of them wins back
        {won.shown(2, scale=100)}."""


def _share(results: Sequence[Result], most: int) -> str:
    pair = select(results, MC, most), select(results, LONG, 1)
    error, likelihood = (gain(*pair, k) for k in ("error", "log_likelihood"))
    shares = [share_of_gain(results, most, k) for k in ("error", "log_likelihood")]
    return f"""Over one plain network, MC dropout with T = {most} gains
        {error.shown(3, scale=100)} points of error and {likelihood.shown(4)} of
        log-likelihood: {shares[0]:.0%} and {shares[1]:.0%} of what the ensemble of
        {N_MEMBERS} gains, for one training instead of {N_MEMBERS}. "Similar
        performance" (at least {1.0 - SIMILAR:.0%} of both):
        {holds(min(shares) >= 1.0 - SIMILAR)}."""


def _settings(kind: Kind, effort: EnsembleEffort) -> str:
    """What was trained, and how."""
    short = effort.length // N_MEMBERS
    if kind.network == MLP:
        unit = "epochs"
        what = f"""Perceptrons 784-{"-".join(map(str, HIDDEN))}-10 with dropout
            {_where(kind)}; trained as a fleet by Adam (batch {BATCH_SIZE}, rate
            {LEARNING_RATE:g} falling along a cosine)"""
    else:
        unit = "steps"
        what = f"""LeNet 20-50-500-10 with dropout {_where(kind)}; the released solver
            ({SOLVER}), but for the decay, which is chosen here (Caffe's 5e-4 is λ =
            2.5e-4), and for its 10,000 steps"""
    return flow(f"""{what}; {effort.length:,} {unit}. {effort.n_replicates} replicates
        of one dropout network, {N_MEMBERS} plain networks trained as long (*ensemble*),
        and {N_MEMBERS} plain networks of {short:,} {unit} each (*short ensemble*, which
        costs as much to train as the one dropout network). Members differ in first
        weights and order of images.""")
