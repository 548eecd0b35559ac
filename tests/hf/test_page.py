"""The blocks of docs/huggingface.md run as they stand, one after the other."""

from tests.hf.models import bert, tokenizer
from tests.pages import run_page


def test_the_page_runs(capsys):
    known = {"model": bert("SequenceClassification"), "tokenizer": tokenizer()}
    run_page("docs/huggingface.md", known)
    assert capsys.readouterr().out.count("LABEL_") == 4 + 2
