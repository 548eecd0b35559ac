"""The papers' LeNet, trained as their Caffe files say: for three reproductions."""

from caveat.papers.lenet.curves import STANDARD, CurveJob, Point, Score, curves
from caveat.papers.lenet.images import Images, Labelled, as_input, load_images
from caveat.papers.lenet.network import DROPOUT, make_lenet
from caveat.papers.lenet.predictions import drawn_logits, grouped, standard_log_probs
from caveat.papers.lenet.storage import Job, Store
from caveat.papers.lenet.training import SOLVER, NetJob, Solver

__all__ = [
    "DROPOUT",
    "SOLVER",
    "STANDARD",
    "CurveJob",
    "Images",
    "Job",
    "Labelled",
    "NetJob",
    "Point",
    "Score",
    "Solver",
    "Store",
    "as_input",
    "curves",
    "drawn_logits",
    "grouped",
    "load_images",
    "make_lenet",
    "standard_log_probs",
]
