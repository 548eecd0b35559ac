"""Tiny models and tokenizers that need no network."""

import pytest
import torch

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

WORDS = "a film that is good bad long and dull very who made it ?".split()
TEXTS = ["good film", "a very long and very dull film", "bad", "it is good", "dull ?"]


def tokenizer():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words = {word: i for i, word in enumerate([*special, *WORDS])}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]"}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, **{f"{k}_token": v for k, v in names.items()}
    )


def bert(head, **options):
    spec = transformers.BertConfig(
        vocab_size=32,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
        initializer_range=0.5,
        **options,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return getattr(transformers, f"BertFor{head}")(spec).eval()
