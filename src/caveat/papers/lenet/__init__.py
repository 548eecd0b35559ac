"""The papers' LeNet, trained as their Caffe files say: for three reproductions."""

from caveat.papers.lenet.images import (
    Images,
    Labelled,
    as_input,
    images_of,
    load_images,
)
from caveat.papers.lenet.network import DROPOUT, lenet_with, make_lenet
from caveat.papers.lenet.predictions import (
    LabelScore,
    drawn_logits,
    grouped,
    standard_log_probs,
)
from caveat.papers.lenet.storage import NetStore
from caveat.papers.lenet.training import SOLVER, NetJob, descend

__all__ = [
    "DROPOUT",
    "SOLVER",
    "Images",
    "Labelled",
    "NetJob",
    "LabelScore",
    "NetStore",
    "as_input",
    "descend",
    "drawn_logits",
    "grouped",
    "images_of",
    "lenet_with",
    "load_images",
    "make_lenet",
    "standard_log_probs",
]
