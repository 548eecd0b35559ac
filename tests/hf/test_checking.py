"""What is no model of transformers, or no tokenizer, is said before anything runs."""

import pytest
import torch

from caveat.errors import InputTypeError, UnsupportedModelError
from caveat.hf import generate, pipeline, score
from tests.hf.models import bert, gpt2, tokenizer

CALL = {"input_ids": torch.tensor([[2, 5]])}


def test_models_of_others_are_refused():
    plain = torch.nn.Linear(2, 2)
    with pytest.raises(InputTypeError, match="MCDropout takes any module"):
        pipeline("text-classification", plain, tokenizer())
    with pytest.raises(InputTypeError, match="Got Linear"):
        score(plain, "good film", tokenizer())
    with pytest.raises(InputTypeError, match="Got Linear"):
        generate(plain, **CALL)


def test_weights_without_numbers_are_refused():
    with pytest.raises(UnsupportedModelError, match="from_pretrained"):
        pipeline("text-classification", bert("SequenceClassification").to("meta"), 0)
    with pytest.raises(UnsupportedModelError, match="from_pretrained"):
        generate(gpt2().to("meta"), **CALL)


@pytest.mark.parametrize("processor", [None, "bert-base-uncased"])
def test_a_tokenizer_is_no_name(processor):
    with pytest.raises(InputTypeError, match="tokenizer"):
        pipeline("text-classification", bert("SequenceClassification"), processor)
    with pytest.raises(InputTypeError, match="tokenizer"):
        score(gpt2(), "good film", processor)


def test_what_reads_and_does_not_write_cannot_judge():
    for head in ("MaskedLM", "SequenceClassification"):
        with pytest.raises(InputTypeError, match="that writes"):
            score(bert(head), "good film", tokenizer())
