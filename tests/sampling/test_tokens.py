"""Calls with a key-value cache: one draw is one function, however it is called."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import caveat
from caveat.errors import CaveatWarning
from caveat.sampling import running
from tests.zoo.specimen import normal, tokens

transformers = pytest.importorskip("transformers")

IDS = tokens(3, length=9)
SMALL: dict[str, Any] = {
    "vocab_size": 31,
    "bos_token_id": 0,
    "eos_token_id": None,
    "pad_token_id": 1,
}


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", CaveatWarning)
        yield


def gpt2(**options: Any) -> nn.Module:
    config = transformers.GPT2Config(
        **SMALL,
        n_embd=8,
        n_layer=2,
        n_head=2,
        n_positions=24,
        resid_pdrop=0.2,
        embd_pdrop=0.2,
        attn_pdrop=0.3,
        initializer_range=0.5,
        **options,
    )
    return transformers.GPT2LMHeadModel(config)


def _of_llama(name: str, **options: Any) -> nn.Module:
    config = getattr(transformers, f"{name}Config")(
        **SMALL,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        attention_dropout=0.3,
        initializer_range=0.5,
        **options,
    )
    return getattr(transformers, f"{name}ForCausalLM")(config)


class LowRank(nn.Module):
    """A linear layer with an adapter behind dropout (LoRA)."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base, self.dropout = base, nn.Dropout(0.3)
        self.down = nn.Linear(base.in_features, 2, bias=False)
        self.up = nn.Linear(2, base.out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + 4 * self.up(self.down(self.dropout(x)))


def llama_with_lora(**options: Any) -> nn.Module:
    model = _of_llama("Llama", **options)
    for layer in model.model.layers:
        layer.self_attn.q_proj = LowRank(layer.self_attn.q_proj)
        layer.self_attn.v_proj = LowRank(layer.self_attn.v_proj)
    return model


def mistral(**options: Any) -> nn.Module:
    return _of_llama("Mistral", sliding_window=4, **options)


def opt(**options: Any) -> nn.Module:
    """Rows and tokens share an axis at its feed-forward layers."""
    config = transformers.OPTConfig(
        **SMALL,
        hidden_size=16,
        word_embed_proj_dim=16,
        num_hidden_layers=1,
        ffn_dim=16,
        num_attention_heads=2,
        dropout=0.2,
        attention_dropout=0.2,
        init_std=0.5,
        **options,
    )
    return transformers.OPTForCausalLM(config)


def t5(**options: Any) -> nn.Module:
    config = transformers.T5Config(
        **SMALL,
        d_model=16,
        d_kv=4,
        d_ff=16,
        num_layers=1,
        num_heads=4,
        dropout_rate=0.2,
        decoder_start_token_id=0,
        **options,
    )
    return transformers.T5ForConditionalGeneration(config)


def bart(**options: Any) -> nn.Module:
    config = transformers.BartConfig(
        **SMALL,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=24,
        dropout=0.2,
        attention_dropout=0.2,
        activation_dropout=0.1,
        init_std=0.3,
        decoder_start_token_id=2,
        forced_eos_token_id=None,
        **options,
    )
    return transformers.BartForConditionalGeneration(config)


def built(make: Callable[..., nn.Module], **options: Any) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return make(**options).eval()


EAGER, SDPA = {"attn_implementation": "eager"}, {"attn_implementation": "sdpa"}
DECODERS = [
    pytest.param(gpt2, EAGER, id="gpt2-eager"),
    pytest.param(gpt2, SDPA, id="gpt2-sdpa"),
    pytest.param(llama_with_lora, EAGER, id="llama-eager"),
    pytest.param(llama_with_lora, SDPA, id="llama-sdpa"),  # heads in place of queries
    pytest.param(mistral, EAGER, id="mistral"),
    pytest.param(opt, SDPA, id="opt"),
]
WITH_ENCODER = [
    pytest.param(t5, {}, id="t5"),
    pytest.param(bart, EAGER, id="bart-eager"),
    pytest.param(bart, SDPA, id="bart-sdpa"),
]


def written(model: Any, mask: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
    """Sequences and logits of greedy decoding under one ω."""
    with caveat.stochastic(model, seed=1, draw=3):
        found = model.generate(
            IDS[:, :5],
            attention_mask=mask,
            do_sample=False,
            max_new_tokens=5,
            return_dict_in_generate=True,
            output_logits=True,
            **options,
        )
    return found.sequences, torch.stack(found.logits, 1)


@pytest.mark.parametrize(("make", "options"), DECODERS + WITH_ENCODER)
def test_generation_is_the_same_with_a_cache_and_without(make, options):
    model = built(make, **options)
    mask = torch.ones(3, 5, dtype=torch.long)
    mask[1, :2] = 0  # padding on the left
    sequences, logits = written(model, mask, use_cache=False)
    cached, cached_logits = written(model, mask, use_cache=True)
    assert torch.equal(cached, sequences)
    torch.testing.assert_close(cached_logits, logits, rtol=1e-4, atol=1e-4)
    plain = model.generate(IDS[:, :5], attention_mask=mask, max_new_tokens=5)
    assert not torch.equal(plain, sequences)  # there was noise


@pytest.mark.parametrize(("make", "options"), WITH_ENCODER)
def test_generation_has_the_masks_of_one_pass_of_encoder_and_decoder(make, options):
    model, mask = built(make, **options), torch.ones(3, 5, dtype=torch.long)
    sequences, logits = written(model, mask)
    draw = caveat.MCDropout(model, seed=1).function(3)
    with torch.no_grad():
        whole = draw(
            input_ids=IDS[:, :5], attention_mask=mask, decoder_input_ids=sequences
        )
    torch.testing.assert_close(whole.logits[:, :-1], logits, rtol=1e-4, atol=1e-4)


def test_a_static_cache_that_gets_full():
    model, mask = built(gpt2, **SDPA), torch.ones(3, 5, dtype=torch.long)
    _, logits = written(model, mask, use_cache=False)
    _, cached = written(model, mask, cache_implementation="static")
    torch.testing.assert_close(cached, logits, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_steps_of_any_size_equal_the_whole(shared, gradients):
    model = built(gpt2)
    draw = caveat.MCDropout(model, seed=0, shared=shared).function(2)
    cache, parts = transformers.DynamicCache(config=model.config), []
    with torch.set_grad_enabled(gradients):
        whole = draw(input_ids=IDS).logits
        for part in IDS.split([4, 1, 1, 3], 1):
            before = cache.get_seq_length()
            output = draw(input_ids=part, past_key_values=cache)
            assert cache.get_seq_length() == before  # the user's stays as it was
            cache = output.past_key_values
            assert cache.get_seq_length() == before + part.shape[1]
            parts.append(output.logits)
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 3])
def test_all_draws_start_from_one_cache(rows):
    model, ids = built(gpt2), IDS[:rows]
    with torch.no_grad():
        cache = model(input_ids=ids[:, :6], use_cache=True).past_key_values
    keys = cache.layers[0].keys.clone()
    mc = caveat.MCDropout(model, seed=0)
    call = {"input_ids": ids[:, 6:], "past_key_values": cache}
    draws = mc.draws(n_draws=4, **call).logits
    with torch.no_grad():
        for t in (3, 0):
            torch.testing.assert_close(mc.function(t)(**call).logits, draws[t])
    assert torch.equal(cache.layers[0].keys, keys)
    assert not torch.equal(draws[0], draws[1])


def test_a_cached_call_of_later_tokens_has_other_masks():
    model = built(gpt2)
    draw = caveat.MCDropout(model, seed=0).function(0)
    with torch.no_grad():
        first = draw(input_ids=IDS[:, :1], use_cache=True)
        # The model's own numbers hang on the place of a token, too: undo that.
        model.transformer.wpe.weight.zero_()
        again = draw(input_ids=IDS[:, :1])
        later = draw(input_ids=IDS[:, :1], past_key_values=first.past_key_values)
    assert not torch.allclose(later.logits, again.logits)


class Attention(nn.Module):
    """Causal attention with a cache of one's own, given and returned as a pair."""

    def __init__(self) -> None:
        super().__init__()
        self.split, self.join = nn.Linear(8, 24), nn.Linear(8, 8)
        self.dropout = nn.Dropout(0.3)

    def forward(self, x: Tensor, past: Any) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        n_rows, length, _ = x.shape
        query, key, value = (
            part.view(n_rows, length, 2, 4).transpose(1, 2)
            for part in self.split(x).chunk(3, -1)
        )
        if past is not None:
            key, value = torch.cat([past[0], key], 2), torch.cat([past[1], value], 2)
        hidden = torch.ones(key.shape[2], key.shape[2]).triu(1)[-length:].bool()
        scores = (query @ key.transpose(-1, -2)).masked_fill(hidden, -1e9)
        mixed = self.dropout(scores.softmax(-1)) @ value
        return self.join(mixed.transpose(1, 2).flatten(2)), (key, value)


class WithPairs(nn.Module):
    """Layers that hand their caches through; rows and tokens share an axis in one."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Attention() for _ in range(2))
        self.wide, self.dropout = nn.Linear(8, 8), nn.Dropout(0.2)

    def forward(self, x: Tensor, past: Any = None) -> tuple[Tensor, Any]:
        new = []
        for i, layer in enumerate(self.layers):
            y, pair = layer(x, None if past is None else past[i])
            new.append(pair)
            flat = self.wide((x + y).reshape(-1, 8)).relu()
            x = x + self.dropout(flat).view(x.shape)
        return x, tuple(new)


class Store:
    def __init__(self) -> None:
        self.pairs: dict[int, Any] = {}


class WithStore(WithPairs):
    """The same, with an object that is changed."""

    def forward(self, x: Tensor, store: Any = None) -> tuple[Tensor, Any]:
        store = Store() if store is None else store
        past = [store.pairs.get(i) for i in range(2)]
        x, new = super().forward(x, past)
        store.pairs.update(enumerate(new))
        return x, store


@pytest.mark.parametrize("make", [WithPairs, WithStore])
@pytest.mark.parametrize("sizes", [[4, 2, 1], [2, 1, 4]])
def test_caches_of_ones_own(make, sizes):
    model, x = built(make), normal(3, 7, 8)
    draw = caveat.MCDropout(model, seed=0).function(1)
    cache, parts = None, []
    with torch.no_grad():
        whole, _ = draw(x)
        for part in x.split(sizes, 1):
            y, cache = draw(part) if cache is None else draw(part, cache)
            parts.append(y)
    torch.testing.assert_close(torch.cat(parts, 1), whole)


class Places(nn.Module):
    """Hides how long its cache is: a tensor of fixed size, written in place."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor, kv_cache: Tensor) -> Tensor:
        kv_cache[:, : x.shape[1]] += x
        h = torch.dropout(self.linear(x), 0.5, True)
        return h + kv_cache.mean(1, keepdim=True)


def test_a_cache_of_unknown_length_is_said_to_be_one():
    draw = caveat.MCDropout(built(Places), seed=0).function(0)
    with pytest.warns(CaveatWarning, match="not known\nhow many"):
        draw(normal(2, 3, 8), torch.zeros(2, 5, 8))


def test_parts_are_drawn_only_under_one_draw():
    model = built(t5)
    mc = caveat.MCDropout(model, seed=4)
    with torch.no_grad():
        plain = model.encoder(IDS).last_hidden_state
        with caveat.stochastic(model, seed=4):
            assert torch.equal(model.encoder(IDS).last_hidden_state, plain)
        with caveat.stochastic(model, seed=4, draw=2):
            drawn = model.encoder(IDS).last_hidden_state
            # A part without noise is what it is.
            embedded = model.shared(IDS)
        whole = mc.function(2)(input_ids=IDS, decoder_input_ids=IDS[:, :2])
        assert torch.equal(model.encoder(IDS).last_hidden_state, plain)
    torch.testing.assert_close(drawn, whole.encoder_last_hidden_state)
    assert torch.equal(embedded, model.shared(IDS))


def test_plans_are_shared_by_the_steps_of_a_generation(monkeypatch):
    """A step costs one pass, not a search for rows and tokens."""
    passes, run_once = [], running._run_pass

    def counted(*args: Any, **options: Any) -> Any:
        passes.append(args)
        return run_once(*args, **options)

    monkeypatch.setattr(running, "_run_pass", counted)
    model = built(gpt2, **SDPA)
    mask = torch.ones(3, 5, dtype=torch.long)
    written(model, mask)
    first = len(passes)
    written(model, mask)
    assert len(passes) - first == 5  # tokens


def test_draws_from_caches_that_grow_are_those_of_the_whole_sequence():
    """Tapes are reused between calls; the masks on them are those of one place."""
    model, n_draws = built(gpt2), 3
    mc = caveat.MCDropout(model, seed=0)
    whole = mc.draws(input_ids=IDS, n_draws=n_draws).logits
    functions = [mc.function(t) for t in range(n_draws)]
    for _ in range(3):  # a template must prove itself before it is used
        caches = [transformers.DynamicCache(config=model.config) for _ in functions]
        for place in range(IDS.shape[1]):
            ids = IDS[:, place : place + 1]
            for t, draw in enumerate(functions):
                # All draws start from the cache that draw t has made so far.
                call = {"input_ids": ids, "past_key_values": caches[t]}
                logits = mc.draws(n_draws=n_draws, **call).logits[t, :, 0]
                expected = whole[t, :, place]
                torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)
                with torch.no_grad():
                    caches[t] = draw(**call).past_key_values


class Marked(nn.Module):
    """Its cache has room for all tokens; only its length tells how many there are."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.dropout = nn.Linear(8, 8), nn.Dropout(0.5)

    def forward(self, x: Tensor, cache: "Room") -> Tensor:
        h = self.dropout(self.linear(x))
        return h + cache.table.sum(1, keepdim=True)


class Room:
    """Says its length by a tensor, whose shape does not show it."""

    def __init__(self, length: int, n_rows: int) -> None:
        self.length, self.table = torch.tensor(length), torch.zeros(n_rows, 9, 8)

    def get_seq_length(self) -> Tensor:
        return self.length


def test_a_template_is_not_used_for_another_number_of_tokens():
    model, x = built(Marked), normal(3, 6, 8)
    mc = caveat.MCDropout(model, seed=0)
    wholes = [mc.draws(x + shift, Room(0, 3), n_draws=4) for shift in range(3)]
    for past in range(6):
        for shift, whole in enumerate(wholes):  # by the third one a template is trusted
            token = x[:, past : past + 1] + shift
            step = mc.draws(token, Room(past, 3), n_draws=4)
            torch.testing.assert_close(step[:, :, 0], whole[:, :, past])
