"""The page around the sections, and docs/report.md as it stands."""

import base64
import doctest
import hashlib
import json
import re
from pathlib import Path

from caveat.reports import making, report
from caveat.reports.page import block_of
from caveat.reports.section import Section
from tests.pages import run_page
from tests.reports.cases import regression
from tests.reports.test_making import ALWAYS

ROOT = Path(__file__).parents[2]
DOC = (ROOT / "docs" / "report.md").read_text()


def test_a_block_of_data_cannot_end_its_element():
    data = {"a": "</script><!--", "b": [1.5, None]}
    block = block_of(data)
    assert "<" not in block and json.loads(block) == data


def test_only_the_script_of_the_page_may_run():
    predictive, y, _ = regression(n_rows=20)
    html = report(predictive, y).html
    script = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script[-1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html and "default-src 'none'" in html
    for word in ("eval(", "localStorage", "http", "fetch(", "blob:", "innerHTML"):
        assert word not in script[-1]
    assert "url(" not in html and "@import" not in html
    assert 5_000 < len(script[-1].encode()) < 16_000


def test_a_section_is_a_value():
    part = Section("a", "A", "What?", "This.", "")
    assert part == Section("a", "A", "What?", "This.", "")


def test_the_page_of_the_docs_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_page("docs/report.md")
    html = (tmp_path / "report.html").read_text()
    assert all(f'id="{name}"' in html for name in [*ALWAYS, "features"])
    printed = str(names["made"]).splitlines()
    shown = DOC.split("```text\n")[1].splitlines()[:4]
    # figures may differ with the model, what the sentences are about may not
    starts = [line.split()[:3] for line in printed]
    assert starts == [line.split()[:3] for line in shown]


def test_the_example_of_the_docstring_runs():
    result = doctest.testmod(making)
    assert result.attempted > 5 and result.failed == 0


def test_the_picture_of_the_docs_is_small():
    picture = ROOT / "docs" / "figures" / "report.png"
    assert "figures/report.png" in DOC and 20_000 < picture.stat().st_size < 200_000
