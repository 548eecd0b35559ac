"""The blocks of docs/huggingface.md run as they stand, one after the other."""

from tests.hf.models import bert, gpt2, llama_lora, tokenizer
from tests.pages import run_page


def test_the_page_runs(capsys):
    words = tokenizer()
    words.model_input_names = ["input_ids", "attention_mask"]
    known = {"model": bert("SequenceClassification"), "tokenizer": words}
    known |= {"writer": gpt2(), "adapted": llama_lora()}
    run_page("docs/huggingface.md", known)
    assert capsys.readouterr().out.count("LABEL_") == 4 + 2
