"""Models of timm, if it is installed: their draws are those of the plain loop.

timm needs torchvision, whose wheels ask for a torch with CUDA. Beside a torch without
it, operators are missing that no model here calls; they are declared, no more.
"""

from importlib import import_module
from importlib.util import find_spec

import pytest
import torch
from torch import nn

import caveat
from tests.sampling.comparing import assert_same_distribution

pytestmark = pytest.mark.slow
MODELS = {
    "resnet18": {"drop_rate": 0.3},
    "vit_tiny_patch16_224": {"img_size": 32, "drop_rate": 0.2, "attn_drop_rate": 0.2},
    "convnext_atto": {"drop_path_rate": 0.3, "drop_rate": 0.1},
    "efficientnet_b0": {"drop_rate": 0.2, "drop_path_rate": 0.2},
    "mixer_s32_224": {"img_size": 32, "proj_drop_rate": 0.2},
}
N_DRAWS = 200


_kept: list[torch.library.Library] = []


@pytest.fixture(scope="module")
def timm():
    if find_spec("timm") is None:
        pytest.skip("timm is not installed")
    if not hasattr(torch.ops.torchvision, "nms"):
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor boxes, Tensor scores, float iou) -> Tensor")
        _kept.append(library)  # as long as it is kept, they are declared
    return import_module("timm")


def plain_loop(model, x):
    """Training mode, but for normalisations, which keep their statistics."""
    model.train()
    for part in model.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            part.eval()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(1)
        found = torch.stack([model(x) for _ in range(N_DRAWS)])
    model.eval()
    return found


@pytest.mark.parametrize("name", MODELS)
def test_draws_are_those_of_the_loop(timm, name):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = timm.create_model(name, num_classes=3, **MODELS[name]).eval()
        model.get_classifier().reset_parameters()  # some begin with nothing but zeros
        x = torch.randn(2, 3, 32, 32)
    ours = caveat.MCDropout(model, seed=0).draws(x, n_draws=N_DRAWS)
    assert_same_distribution([ours], [plain_loop(model, x)])
    assert float(ours.std(0).max()) > 0
