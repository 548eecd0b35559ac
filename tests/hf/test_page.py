"""The blocks of docs/huggingface.md run as they stand, one after the other."""

import re
from pathlib import Path

from tests.hf.models import bert, tokenizer

PAGE = Path(__file__).parents[2] / "docs" / "huggingface.md"


def test_the_page_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    known = {"model": bert("SequenceClassification"), "tokenizer": tokenizer()}
    for block in blocks:
        exec(block, known)
    assert len(blocks) == 2
    assert capsys.readouterr().out.count("LABEL_") == 4 + 2
