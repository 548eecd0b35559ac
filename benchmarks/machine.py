"""What the figures were measured on; no names of hosts, users or folders."""

import os
import platform
from pathlib import Path

import torch


def describe() -> dict[str, str | int]:
    """Return processor, cores, threads and versions, as the results state them."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count() or 0,
        "threads": torch.get_num_threads(),
        "OpenMP waiting": os.environ.get("OMP_WAIT_POLICY", "default"),
        "vector unit": torch.backends.cpu.get_cpu_capability(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _cpu_model() -> str:
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text().splitlines() if listing.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.processor() or "unknown"
