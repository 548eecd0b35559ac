"""Every example of a docstring is run: here, or by the tests of its package."""

import doctest
import importlib
import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
HERE = [
    "estimators.pipelines",
    "estimators.search_cv",
    "exporting.door",
    "files.saving",
    "lightning.writer",
    "papers.times",
    "sampling.closed_form.laws",
    "sampling.closed_form.origins",
    "sampling.context",
    "sampling.mcdropout",
    "sampling.registry",
    "sampling.sites",
]
"""Modules whose examples no test of their package runs."""
DOWNLOADS = {"caveat.data.images", "caveat.data.reviews", "caveat.data.uci_results"}
"""Their examples read files that may not be there."""


@pytest.mark.filterwarnings("ignore")  # of the packages that are shown
@pytest.mark.parametrize("name", HERE)
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(f"caveat.{name}")
    with torch.random.fork_rng(devices=[]):
        found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert found.attempted > 0 and found.failed == 0


def modules_with_examples():
    for path in sorted((SOURCE / "caveat").rglob("*.py")):
        if re.search(r"^\s+>>> ", path.read_text(), re.M):
            name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
            yield name.removesuffix(".__init__")


def is_named(module, test, text):
    """Whether a test of examples names the module, or goes through its package."""
    parts = module.split(".")
    if "iter_modules" in text and test.parent.name == parts[-2]:
        return True
    tails = (re.escape(".".join(parts[k:])) for k in range(1, len(parts)))
    return any(re.search(rf"[\"' .]{tail}[\"'\n, )]", text) for tail in tails)


def test_every_example_is_run():
    texts = {path: path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    tests = {path: text for path, text in texts.items() if "doctest.testmod" in text}
    modules = list(modules_with_examples())
    assert len(modules) > 100
    modules = [m for m in modules if m not in DOWNLOADS]
    missing = [
        m for m in modules if not any(is_named(m, t, s) for t, s in tests.items())
    ]
    assert not missing
