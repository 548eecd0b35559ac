"""Tiny models and tokenizers that need no network."""

import warnings

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


def pieces():
    """A tokenizer that cuts words: "longish" is long ##ish."""
    found = tokenizer()
    words = {**found.get_vocab(), "##ish": 18, "##est": 19}
    inner = tokenizers.Tokenizer(tokenizers.models.WordPiece(words, unk_token="[UNK]"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    inner.post_processor = found.backend_tokenizer.post_processor
    names = {name: getattr(found, name) for name in ("pad_token", "unk_token")}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, cls_token="[CLS]", sep_token="[SEP]", **names
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
    return _seeded(lambda: getattr(transformers, f"BertFor{head}")(spec))


WRITER = {"vocab_size": 32, "bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}


def gpt2(**options):
    spec = transformers.GPT2Config(
        **WRITER,
        n_embd=8,
        n_layer=1,
        n_head=2,
        n_positions=32,
        resid_pdrop=0.3,
        embd_pdrop=0.2,
        attn_pdrop=0.3,
        initializer_range=0.5,
        **options,
    )
    return _seeded(lambda: transformers.GPT2LMHeadModel(spec))


def writer_head(pad):
    """A classifier that reads its answer off the last token of a text."""
    spec = gpt2().config
    spec.pad_token_id = pad
    return _seeded(lambda: transformers.GPT2ForSequenceClassification(spec))


def llama_lora():
    """Llama without dropout of its own, adapters of PEFT with some."""
    peft = pytest.importorskip("peft")
    spec = transformers.LlamaConfig(
        **WRITER,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.5,
    )
    adapters = peft.LoraConfig(
        r=2,
        lora_dropout=0.4,
        lora_alpha=8,
        target_modules=["q_proj", "v_proj"],
        init_lora_weights=False,
    )
    with warnings.catch_warnings():  # peft asks by a name that is to go
        warnings.simplefilter("ignore", FutureWarning)
        return _seeded(
            lambda: peft.get_peft_model(transformers.LlamaForCausalLM(spec), adapters)
        )


def made(kind, **options):
    """A causal model of Llama's kind, with dropout in attention."""
    spec = getattr(transformers, f"{kind}Config")(
        **WRITER,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        attention_dropout=0.3,
        initializer_range=0.5,
        **options,
    )
    return _seeded(lambda: getattr(transformers, f"{kind}ForCausalLM")(spec))


def bart():
    spec = transformers.BartConfig(
        **WRITER,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=24,
        dropout=0.3,
        init_std=0.5,
        decoder_start_token_id=3,
        forced_eos_token_id=None,
    )
    return _seeded(lambda: transformers.BartForConditionalGeneration(spec))


def t5():
    spec = transformers.T5Config(
        **WRITER,
        d_model=16,
        d_kv=4,
        d_ff=16,
        num_layers=1,
        num_heads=4,
        dropout_rate=0.3,
        decoder_start_token_id=0,
    )
    return _seeded(lambda: transformers.T5ForConditionalGeneration(spec))


def _seeded(make):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make().eval()
