"""Models of other people's libraries, in tiny configurations with random weights."""

from collections.abc import Callable

from torch import nn

from tests.zoo.specimen import POOL, Specimen, features, normal, padding, tokens

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


def bart(**options: float) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        from transformers import BartConfig, BartForConditionalGeneration

        config = BartConfig(
            vocab_size=31,
            d_model=8,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=16,
            decoder_ffn_dim=16,
            max_position_embeddings=16,
            dropout=0.2,
            attention_dropout=0.3,
            activation_dropout=0.1,
            init_std=0.5,
            use_cache=False,
            **options,
        )
        return BartForConditionalGeneration(config)

    return make


def whisper() -> nn.Module:
    from transformers import WhisperConfig, WhisperModel

    config = WhisperConfig(
        vocab_size=31,
        d_model=8,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_source_positions=6,
        max_target_positions=8,
        num_mel_bins=4,
        dropout=0.2,
        attention_dropout=0.3,
        init_std=0.5,
        use_cache=False,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    return WhisperModel(config)


def wav2vec2(layerdrop: float) -> Callable[[], nn.Module]:
    """Without the masking of its input, which is a method of training."""

    def make() -> nn.Module:
        from transformers import Wav2Vec2Config, Wav2Vec2Model

        config = Wav2Vec2Config(
            vocab_size=31,
            hidden_size=8,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=16,
            conv_dim=(4, 4),
            conv_stride=(5, 2),
            conv_kernel=(10, 3),
            num_feat_extract_layers=2,
            num_conv_pos_embeddings=4,
            num_conv_pos_embedding_groups=2,
            hidden_dropout=0.2,
            attention_dropout=0.3,
            activation_dropout=0.1,
            feat_proj_dropout=0.2,
            layerdrop=layerdrop,
            initializer_range=0.5,
            apply_spec_augment=False,
        )
        return Wav2Vec2Model(config)

    return make


def pairs_of_texts(n: int):
    args, kwargs = texts(n)
    return args, {**kwargs, "decoder_input_ids": tokens(n, length=3)}


def spectra_and_texts(n: int):
    kwargs = {"decoder_input_ids": tokens(n, length=3)}
    return (), {"input_features": normal(POOL, 4, 12)[:n], **kwargs}


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


def last_state(output):
    return output.last_hidden_state


def text(name: str, make: Callable[[], nn.Module], **kwargs) -> Specimen:
    kwargs = {"needs": "transformers", "n_draws": 150, "inputs": texts} | kwargs
    return Specimen(name, make, **kwargs)


SPECIMENS = [
    text("bert_eager", bert("eager"), sites=8, read=logits),
    text("bert_sdpa", bert("sdpa"), sites=8, read=logits),
    text("bert_body", bert("sdpa", head=False), sites=7),
    text("distilbert_eager", distilbert("eager"), sites=6, read=logits),
    text("distilbert_sdpa", distilbert("sdpa"), sites=6, read=logits),
    text("gpt2_eager", gpt2("eager"), sites=7, read=logits),
    text("gpt2_sdpa", gpt2("sdpa"), sites=7, read=logits),
    text("gpt2_with_cache", gpt2("sdpa", use_cache=True), sites=7, read=logits),
    text("bart", bart(), inputs=pairs_of_texts, read=logits),
    text(
        "bart_layer_drop",
        bart(encoder_layerdrop=0.4),
        inputs=pairs_of_texts,
        read=logits,
        noise_has_rows=False,
        reaches_python=True,
        n_draws=80,
    ),
    text("whisper", whisper, inputs=spectra_and_texts, read=last_state),
    text("wav2vec2", wav2vec2(0.0), inputs=features(60), read=last_state),
    text(
        "wav2vec2_layer_drop",
        wav2vec2(0.4),
        inputs=features(60),
        read=last_state,
        noise_has_rows=False,
        reaches_python=True,
        n_draws=80,
    ),
    Specimen(
        "timm_vit",
        vision_transformer,
        features(1, 8, 8),
        needs="timm",
        n_draws=150,
    ),
]
