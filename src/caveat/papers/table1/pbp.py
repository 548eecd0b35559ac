"""Protocol ``pbp``: probabilistic backpropagation, as its authors ran it.

One hidden layer and 40 passes; all splits of a set are trained as one stack.
"""

import numpy as np
import torch

from caveat.data import load_uci
from caveat.papers.table1.jobs import Job, Record, SplitRows
from caveat.training.pbp.units import PBPFit, fit_pbp

EPOCHS = 40


def run_pbp(job: Job) -> list[Record]:
    """The records of a job, one per split.

    Parameters
    ----------
    job : Job
        Of the protocol ``"pbp"``.

    Returns
    -------
    list of Record
    """
    splits = job.rows()
    epochs = job.shortened(EPOCHS)
    fit = fit_pbp(
        [rows.x for rows in splits],
        [rows.y[:, 0] for rows in splits],
        hidden=(load_uci(job.dataset).n_hidden,),
        n_epochs=epochs,
        seeds=[rows.number for rows in splits],
    )
    return [_score(job, rows, fit, k, epochs) for k, rows in enumerate(splits)]


def _score(job: Job, rows: SplitRows, fit: PBPFit, number: int, epochs: int) -> Record:
    found = fit.predictive(rows.x_test, number)
    y = torch.from_numpy(rows.y_test[:, 0])
    point = fit.at_means(rows.x_test, number) - rows.y_test[:, 0]
    return Record(
        protocol=job.protocol,
        variant=job.variants[0],
        dataset=job.dataset,
        split=rows.number,
        rmse=float((found.mean - y).square().mean().sqrt()),
        log_likelihood=float(found.log_prob(y).mean()),
        rmse_weight_averaging=float(np.sqrt(np.mean(point**2))),
        scale=float(found.noise_variance[0].reciprocal()),
        drop_rate=0.0,
        input_drop_rate=0.0,
        hidden_layers=1,
        epochs=epochs,
        n_networks=1,
        n_draws=0,
        seconds=0.0,
    )
