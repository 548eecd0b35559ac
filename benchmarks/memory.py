"""Peak memory of this process."""

import ctypes
import gc
import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


def reset_peak() -> None:
    """Let the peak start again from what is in use now, where the system can."""
    if _RESET.exists():
        _RESET.write_text("5")


def hand_back() -> None:
    """Give to the system what was let go, where the C library can."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def peak() -> int:
    """Return the largest resident size so far, in bytes.

    Linux keeps ``ru_maxrss`` over fork and exec, so that a child starts with the peak
    of its parent: fatal for small differences. ``VmHWM`` belongs to the process alone.
    """
    if _STATUS.exists():
        lines = _STATUS.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if "VmHWM" in line) * 1024
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found if sys.platform == "darwin" else found * 1024
