"""Plans become networks, and networks scores; only here are test rows seen, last."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from caveat.papers.table1.jobs import Job, Record, SplitPlan, SplitRows
from caveat.papers.table1.protocols import PROTOCOLS
from caveat.training import Ensemble, NetworkSpec, Problem, fit_ensembles
from caveat.training.likelihood import MixtureScore


def run_planned(job: Job) -> list[Record]:
    """The records of a job, one per split and variant."""
    splits = job.rows()
    plans = PROTOCOLS[job.protocol](job, splits)
    ensembles = _refit(splits, plans)
    return [
        record
        for rows, plan, ensemble in zip(splits, plans, ensembles, strict=True)
        for record in score(job, rows, plan, ensemble)
    ]


def _refit(splits: Sequence[SplitRows], plans: Sequence[SplitPlan]) -> list[Ensemble]:
    """On all training rows, with the decay of the chosen precision."""
    found: dict[int, Ensemble] = {}
    for shared in dict.fromkeys(plan.spec.shared for plan in plans):
        chosen = [i for i, plan in enumerate(plans) if plan.spec.shared == shared]
        problems = [
            Problem(
                f"split {splits[i].number}",
                splits[i].x,
                splits[i].y,
                _at_its_precision(plans[i]),
                seed=splits[i].number,
            )
            for i in chosen
        ]
        fitted = fit_ensembles(problems, n_threads=1)
        found.update(zip(chosen, fitted, strict=True))
    return [found[i] for i in range(len(splits))]


def _at_its_precision(plan: SplitPlan) -> NetworkSpec:
    if plan.spec.objective.has_head:
        return plan.spec
    return replace(plan.spec, precision=plan.scales[0])


def score(
    job: Job, rows: SplitRows, plan: SplitPlan, ensemble: Ensemble
) -> list[Record]:
    """Records of a split, one per variant; their seconds are not known here."""
    targets = torch.from_numpy(rows.y_test)
    scores = [MixtureScore(targets, scale) for scale in plan.scales]
    for block in ensemble.blocks(rows.x_test, n_draws=job.n_draws):
        for own in scores:
            own.add(block.means, block.precisions)
    point = ensemble.point(rows.x_test) - targets
    spec, twins = plan.spec, torch.from_numpy(rows.has_twin)
    return [
        Record(
            protocol=job.protocol,
            variant=variant,
            dataset=job.dataset,
            split=rows.number,
            rmse=own.rmse,
            log_likelihood=own.log_likelihood,
            rmse_weight_averaging=float(point.square().mean().sqrt()),
            scale=scale,
            drop_rate=spec.drop_rate,
            input_drop_rate=spec.input_drop_rate,
            hidden_layers=len(spec.hidden),
            epochs=spec.schedule.epochs,
            n_networks=spec.n_members,
            n_draws=job.n_draws,
            seconds=0.0,
            learning_rate=spec.schedule.learning_rate,
            ll_twins=float(own.log_densities[twins].mean()),
            ll_others=float(own.log_densities[~twins].mean()),
        )
        for variant, scale, own in zip(job.variants, plan.scales, scores, strict=True)
    ]
