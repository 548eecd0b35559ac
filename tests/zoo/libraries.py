"""Models of other people's libraries, in tiny configurations with random weights."""

from collections.abc import Callable

from torch import nn

from tests.zoo.specimen import Specimen, features, padding, tokens

LENGTH = 5


def texts(n: int):
    """Token ids with padding on the right, as keywords."""
    mask = padding(n, length=LENGTH).long()
    return (), {"input_ids": tokens(n, length=LENGTH), "attention_mask": mask}


def bert(attention: str, head: bool = True) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        from transformers import BertConfig, BertForSequenceClassification, BertModel

        config = BertConfig(
            vocab_size=31,
            hidden_size=8,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=16,
            hidden_dropout_prob=0.2,
            attention_probs_dropout_prob=0.3,
            initializer_range=0.5,
            attn_implementation=attention,
        )
        return BertForSequenceClassification(config) if head else BertModel(config)

    return make


def distilbert(attention: str) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        from transformers import (
            DistilBertConfig,
            DistilBertForSequenceClassification,
        )

        config = DistilBertConfig(
            vocab_size=31,
            dim=8,
            n_layers=2,
            n_heads=2,
            hidden_dim=16,
            max_position_embeddings=16,
            dropout=0.2,
            attention_dropout=0.3,
            initializer_range=0.5,
            attn_implementation=attention,
        )
        return DistilBertForSequenceClassification(config)

    return make


def gpt2(attention: str, use_cache: bool = False) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        from transformers import GPT2Config, GPT2LMHeadModel

        config = GPT2Config(
            vocab_size=31,
            n_embd=8,
            n_layer=2,
            n_head=2,
            n_positions=16,
            resid_pdrop=0.2,
            embd_pdrop=0.2,
            attn_pdrop=0.3,
            bos_token_id=0,
            eos_token_id=0,
            use_cache=use_cache,
            initializer_range=0.5,
            attn_implementation=attention,
        )
        return GPT2LMHeadModel(config)

    return make


def vision_transformer() -> nn.Module:
    from timm.models.vision_transformer import VisionTransformer

    return VisionTransformer(
        img_size=8,
        patch_size=4,
        in_chans=1,
        num_classes=3,
        embed_dim=8,
        depth=2,
        num_heads=2,
        drop_rate=0.1,
        pos_drop_rate=0.1,
        proj_drop_rate=0.2,
        attn_drop_rate=0.3,
        drop_path_rate=0.3,
    )


def logits(output):
    return output.logits


def text(name: str, make: Callable[[], nn.Module], **kwargs) -> Specimen:
    kwargs = {"needs": "transformers", "n_draws": 150} | kwargs
    return Specimen(name, make, texts, **kwargs)


SPECIMENS = [
    text("bert_eager", bert("eager"), sites=8, read=logits),
    text("bert_sdpa", bert("sdpa"), sites=8, read=logits),
    text("bert_body", bert("sdpa", head=False), sites=7),
    text("distilbert_eager", distilbert("eager"), sites=6, read=logits),
    text("distilbert_sdpa", distilbert("sdpa"), sites=6, read=logits),
    text("gpt2_eager", gpt2("eager"), sites=7, read=logits),
    text("gpt2_sdpa", gpt2("sdpa"), sites=7, read=logits),
    text("gpt2_with_cache", gpt2("sdpa", use_cache=True), sites=7, read=logits),
    Specimen(
        "timm_vit",
        vision_transformer,
        features(1, 8, 8),
        needs="timm",
        n_draws=150,
    ),
]
