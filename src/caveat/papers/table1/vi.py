"""Protocol ``vi``: factorised Gaussian weights, our family, beside Graves' column.

One hidden layer; all splits of a set are trained as one stack. The precision of the
noise and the length-scale of the prior maximise the bound. What the bound does not
give, Adam's rate, its cosine and the least number of steps, was set once for all sets
by six trials on validation rows of three of them.
"""

import math
from dataclasses import replace

from caveat.data import load_uci
from caveat.noise import FactorisedGaussian
from caveat.papers.table1.jobs import Job, Record, SplitPlan
from caveat.papers.table1.scoring import score
from caveat.training import Ensemble, Member, NetworkSpec, Schedule
from caveat.training.scaling import Scaling
from caveat.training.variational import train_factorised

LEAST_STEPS = 20_000
BATCH = 32


def run_vi(job: Job) -> list[Record]:
    """The records of a job, one per split.

    Parameters
    ----------
    job : Job
        Of the protocol ``"vi"``.

    Returns
    -------
    list of Record
    """
    splits = job.rows()
    spec = vi_spec(job, len(splits[0].x))
    scalings = [Scaling.of(rows.x, rows.y) for rows in splits]
    data = [s.rows(rows.x, rows.y) for s, rows in zip(scalings, splits, strict=True)]
    members = [
        Member.of(
            spec,
            f"split {rows.number}",
            precision=1.0,
            n_train=len(rows.x),
            data=place,
            seed=rows.number,
        )
        for place, rows in enumerate(splits)
    ]
    found = train_factorised(members, data)
    records = []
    for place, (rows, scaling) in enumerate(zip(splits, scalings, strict=True)):
        scale = float(found.precisions[place] / scaling.y_std[0] ** 2)
        ensemble = Ensemble(found.trained[[place]], scaling)
        (record,) = score(job, rows, SplitPlan(spec, (scale,)), ensemble)
        records.append(replace(record, drop_rate=0.0, input_drop_rate=0.0))
    return records


def vi_spec(job: Job, n_train: int) -> NetworkSpec:
    """As long as the dropout networks of the paper, and at least 20,000 steps.

    The rates are not used: any above 0 puts the family on a layer.
    """
    data = load_uci(job.dataset)
    steps = math.ceil(n_train / BATCH)
    epochs = max(10 * data.n_epochs, math.ceil(LEAST_STEPS / steps))
    return NetworkSpec(
        (data.n_hidden,),
        noise=FactorisedGaussian(),
        drop_rate=0.5,
        input_drop_rate=0.5,
        schedule=Schedule(job.shortened(epochs), BATCH, 1e-2, "cosine", keep_last=True),
    )
