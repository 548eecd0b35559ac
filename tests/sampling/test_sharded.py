"""Models that are sharded over processes are refused, and left as they were."""

import subprocess
import sys

import pytest
import torch

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="torch without torch.distributed"
)

SHARDED = """
import sys, warnings; warnings.simplefilter("ignore")
import torch, torch.distributed as dist, caveat
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
mesh = init_device_mesh("cpu", (1,))
model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1)).eval()
if sys.argv[1] == "fsdp":
    for part in (model[0], model[2], model):
        fully_shard(part, mesh=mesh)
else:
    parallelize_module(model, mesh, {"0": ColwiseParallel()})
x = torch.ones(2, 3)
before = model(x).detach()
mc = caveat.MCDropout(model, seed=0)
for call in (lambda: mc.draws(x, n_draws=2), lambda: mc.function(0)(x)):
    try:
        call()
    except caveat.errors.UnsupportedModelError as error:
        assert "sharded" in str(error)
    else:
        raise AssertionError("not refused")
    assert torch.equal(model(x).detach(), before)
model(x).sum().backward()
print("right")
dist.destroy_process_group()
"""


@pytest.mark.parametrize("kind", ["fsdp", "tensor_parallel"])
def test_refused_and_unharmed(kind):
    done = subprocess.run(
        [sys.executable, "-c", SHARDED, kind], capture_output=True, text=True
    )
    assert "right" in done.stdout, done.stderr[-2000:]
