"""The blocks of docs/huggingface.md run as they stand, one after the other."""

import re
from pathlib import Path

from tests.hf.models import bert, gpt2, llama_lora, tokenizer

PAGE = Path(__file__).parents[2] / "docs" / "huggingface.md"


def test_the_page_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    words = tokenizer()
    words.model_input_names = ["input_ids", "attention_mask"]
    known = {"model": bert("SequenceClassification"), "tokenizer": words}
    known |= {"writer": gpt2(), "adapted": llama_lora()}
    for block in blocks:
        exec(block, known)
    assert len(blocks) == 5
    assert capsys.readouterr().out.count("LABEL_") == 4 + 2
