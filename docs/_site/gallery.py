"""The examples on the site: run, with what they print, draw, take and need."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.memory import peak, reset_peak  # noqa: E402

ARGUMENTS = {
    "bandits": ["--quick", "--workers", "1"],
    "sb3_cartpole": ["--quick"],
    "active_learning": ["--workers", "1"],
}
"""What follows the name of the program, where the site does not run it bare."""

SHOWN_ONLY = ("lora",)
"""Their data may have to be downloaded, and nothing is for the site."""

ORDER = (
    "first_regression",
    "calibration",
    "defer",
    "conformal",
    "cascade",
    "active_learning",
    "bandits",
    "moments",
    "bayesian_dropout_logistic",
    "network_kernels",
)
"""From what a newcomer asks to theory; what is not named comes last."""


class Order:
    """The place of an example among the others."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        stem = Path(name).stem
        return ORDER.index(stem) if stem in ORDER else len(ORDER), stem


saved: list[Path] = []
_savefig = Figure.savefig


def watch(*_: object) -> None:
    """Note every picture that an example saves, in a place that is nobody's."""
    saved.clear()

    def savefig(figure: Figure, path: Any, **options: Any) -> None:
        _savefig(figure, path, **options)
        saved.append(Path(path).resolve())

    Figure.savefig = savefig  # type: ignore[method-assign,assignment]


def pictures(_: object, variables: dict[str, Any], settings: dict[str, Any]) -> str:
    """Show what was saved; the examples draw without pyplot."""
    places = []
    for path, place in zip(saved, variables["image_path_iterator"], strict=False):
        shutil.copy(path, place)
        places.append(place)
    saved.clear()
    return figure_rst(places, settings["src_dir"], "what the example draws")


def arguments(_: object, variables: dict[str, Any]) -> list[str]:
    """What follows the name of the program."""
    return ARGUMENTS.get(Path(variables["src_file"]).stem, [])


def measured(call: Callable[[], Any]) -> tuple[float, Any]:
    """Run, and say how much more memory it needed at its peak, in MB."""
    reset_peak()
    before = peak()
    found = call()
    return (peak() - before) / 1e6, found


SETTINGS: dict[str, Any] = {
    "examples_dirs": ["examples"],
    "gallery_dirs": ["docs/auto_examples"],
    "filename_pattern": rf"/(?!{'|'.join(SHOWN_ONLY)})\w+\.py$",
    "image_scrapers": (pictures,),
    "reset_modules": (watch,),
    "reset_argv": arguments,
    "show_memory": measured,
    "min_reported_time": 0,
    "download_all_examples": False,
    "remove_config_comments": True,
    "only_warn_on_example_error": False,
    "abort_on_example_error": True,
    "nested_sections": False,
    "write_computation_times": True,
    "thumbnail_size": (480, 320),
    "default_thumb_file": str(ROOT / "docs" / "_static" / "table.png"),
    "within_subsection_order": Order,
}
