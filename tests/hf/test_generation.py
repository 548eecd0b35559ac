"""Continuations: one function a draw, whatever the padding, company and cache."""

import collections

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

import caveat
from caveat.errors import CaveatWarning, InputTypeError, ParameterError, ShapeError
from caveat.hf import generate, score
from caveat.hf.generation import _chooser
from caveat.hf.options import Choosing
from tests.hf.models import bart, bert, gpt2, llama_lora, made, t5, tokenizer

MODELS = {"gpt2": gpt2, "llama": llama_lora, "t5": t5}
ROWS = [[2, 5, 6, 7, 8], [2, 9, 4], [2, 12, 10, 5, 7]]
SHORT = {"n_draws": 2, "max_new_tokens": 4, "eos_token_id": None}


def prompts(rows=ROWS, side="left"):
    parts = [torch.tensor(row) for row in rows]
    flip = (lambda row: row.flip(0)) if side == "left" else (lambda row: row)
    ids = pad_sequence([flip(row) for row in parts], batch_first=True)
    ids = ids.flip(1) if side == "left" else ids
    return {"input_ids": ids, "attention_mask": (ids != 0).long()}


def assert_alike(one, other, **tolerance):
    assert torch.equal(one.tokens, other.tokens) and torch.equal(one.mask, other.mask)
    for name in ("log_probs", "entropy", "mutual_information", "log_likelihood"):
        left, right = getattr(one, name), getattr(other, name)
        torch.testing.assert_close(left, right, equal_nan=True, **tolerance)


@pytest.mark.parametrize("name", MODELS)
def test_cached_is_uncached_and_one_function_wrote_each(name):
    """Every token is the best of its draw, in one pass over the whole text."""
    model = MODELS[name]()
    found = generate(model, **prompts(), **SHORT, use_cache=True)
    bare = generate(model, **prompts(), **SHORT, use_cache=False)
    assert_alike(found, bare, rtol=1e-4, atol=1e-4)
    mc = caveat.MCDropout(model, seed=0)
    for draw in range(2):
        for i, row in enumerate(ROWS):
            own = found.tokens[draw, i].tolist()
            call = {"input_ids": torch.tensor([row + own])}
            if name == "t5":
                call = {
                    "input_ids": torch.tensor([row]),
                    "decoder_input_ids": torch.tensor([[0, *own]]),
                }
            with torch.no_grad():
                best = mc.function(draw)(**call).logits[0].argmax(-1)
            first = 0 if name == "t5" else len(row) - 1
            assert best[first : first + 4].tolist() == own
    assert found.mutual_information.max() > 1e-3
    assert len({tuple(row.flatten().tolist()) for row in found.tokens}) > 1


@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_neither_padding_nor_order_nor_company_matter(name):
    model = MODELS[name]()
    options = {**SHORT, "do_sample": True, "seed": 3}
    found = generate(model, **prompts(), **options)
    right = generate(model, **prompts(side="right"), **options, batch_size=1)
    assert_alike(found, right, rtol=1e-5, atol=1e-5)
    turned = generate(model, **prompts(ROWS[::-1]), **options)
    assert torch.equal(turned.tokens.flip(1), found.tokens)
    alone = generate(model, **prompts(ROWS[1:2]), **options)
    assert torch.equal(alone.tokens[:, 0], found.tokens[:, 1])


def test_numbers_are_those_of_score():
    model, words = gpt2(), tokenizer()
    ids = words(["good film"], return_tensors="pt")["input_ids"]
    unwritable = [*range(4), *range(len(words), 32)]
    found = generate(
        model,
        input_ids=ids,
        **SHORT,
        do_sample=True,
        temperature=3.0,
        suppress_tokens=unwritable,
    )
    own = score(model, ("good film", found.texts(words)[0][1]), words, n_draws=2)
    assert own.tokens.tolist() == found.tokens[1, 0].tolist()
    torch.testing.assert_close(own.log_probs, found.log_probs[1, 0])
    assert own.log_likelihood == pytest.approx(float(found.log_likelihood[1, 0]))


def test_samples_have_the_probabilities_of_the_softmax():
    """By the error of their frequencies; steps and draws are independent."""
    logits = torch.tensor([[0.0, 1.0, -1.0, 2.5, -torch.inf]])
    expected, n_draws = logits[0].softmax(-1), 3000
    pairs = collections.Counter()
    for draw in range(n_draws):
        chooser = _chooser(Choosing(True, None, None, None), 0, draw)
        found = [int(chooser(None, logits).argmax()) for _ in range(2)]
        pairs[tuple(found)] += 1
    for i, p in enumerate(expected):
        for j, q in enumerate(expected):
            error = (p * q * (1 - p * q) / n_draws) ** 0.5
            assert abs(pairs[i, j] / n_draws - p * q) <= 5 * error


def test_limits_hold_and_judgement_does_not_follow_them():
    model, call = gpt2(), {"input_ids": torch.tensor([[2, 5, 6]])}
    greedy = generate(model, **call, **SHORT)
    for limit in ({"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}):
        found = generate(model, **call, **SHORT, do_sample=True, **limit)
        assert_alike(found, greedy)  # the same tokens, judged alike
    penalised = generate(model, **call, **SHORT, no_repeat_ngram_size=1)
    for row in penalised.tokens[:, 0].tolist():
        assert len(set(row)) == len(row)


def test_a_text_ends_with_its_last_token():
    model, call = gpt2(), prompts()
    free = generate(model, **call, **SHORT)
    end = int(free.tokens[0, 0, 1])
    found = generate(model, **call, **{**SHORT, "eos_token_id": [3, end]})
    for tokens, mask, numbers in zip(
        found.tokens.flatten(0, 1),
        found.mask.flatten(0, 1),
        found.entropy.flatten(0, 1),
        strict=True,
    ):
        own = tokens[mask].tolist()
        assert not {3, end} & set(own[:-1])
        assert len(own) == 4 or own[-1] in (3, end)
        assert bool(tokens[~mask].eq(0).all())
        assert torch.equal(numbers.isnan(), ~mask)
    assert found.mask[0, 0].tolist() != [True] * 4
    written = found.texts(tokenizer())
    assert len(written) == len(ROWS) and all(len(row) == 2 for row in written)


def test_nothing_of_the_user_is_touched():
    model, before = gpt2(), torch.random.get_rng_state()
    config = model.generation_config.to_dict()
    call = {"input_ids": torch.tensor([[2, 5, 6]])}
    one = generate(model, **call, **SHORT, do_sample=True, seed=1)
    assert torch.equal(before, torch.random.get_rng_state())
    assert model.generation_config.to_dict() == config and not model.training
    again = generate(model, **call, **SHORT, do_sample=True, seed=1)
    other = generate(model, **call, **SHORT, do_sample=True, seed=2)
    assert_alike(one, again)
    assert not torch.equal(one.tokens, other.tokens)


REFUSED = {
    "num_beams": {"num_beams": 4},
    "n_draws": {"num_return_sequences": 2},
    "another model": {"assistant_model": object()},
    "eos_token_id": {"stop_strings": ["."]},
    "typical_p": {"do_sample": True, "typical_p": 0.5},
    "max_new_tokens": {"max_new_token": 3},
    "token_type_ids": {"token_type_ids": torch.zeros(1, 2)},
    "do_sample=True": {"temperature": 0.5},
    "top_p": {"do_sample": True, "top_p": 2.0},
    "number of a token": {"eos_token_id": "[SEP]"},
    "at most max_new_tokens=4": {"min_new_tokens": 9, "max_new_tokens": 4},
    "cache_implementation": {"cache_implementation": "offloaded"},
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_honoured_is_refused(words):
    with pytest.raises(ParameterError, match=words):
        generate(gpt2(), input_ids=torch.tensor([[2, 5]]), **REFUSED[words])


def test_a_configuration_cannot_smuggle_a_beam_in():
    model = gpt2()
    model.generation_config.num_beams = 3
    with pytest.raises(ParameterError, match="num_beams=3"):
        generate(model, input_ids=torch.tensor([[2, 5]]))
    generate(model, input_ids=torch.tensor([[2, 5]]), num_beams=1, **SHORT)


def of_its_configuration(model, **values):
    for name, value in values.items():
        setattr(model.generation_config, name, value)
    return model


def test_what_a_configuration_says_holds():
    call, ends = {"input_ids": torch.tensor([[2, 5, 6]])}, list(range(3, 32))
    short = {"n_draws": 2, "max_new_tokens": 4}
    soon = generate(of_its_configuration(gpt2(), eos_token_id=ends), **call, **short)
    assert soon.mask.sum(-1).max() == 1
    later = of_its_configuration(gpt2(), eos_token_id=ends, min_length=6)
    assert generate(later, **call, **short).mask.sum(-1).tolist() == [[4], [4]]
    plain = generate(gpt2(), **call, **short)
    talkative = {"return_dict_in_generate": True, "output_scores": True}
    assert_alike(
        generate(of_its_configuration(gpt2(), **talkative), **call, **short), plain
    )


def test_a_decoder_is_judged_after_the_token_it_began_with():
    call = {"input_ids": torch.tensor([[2, 5, 6]])}
    told = generate(t5(), **call, **SHORT, decoder_start_token_id=5)
    known = of_its_configuration(t5(), decoder_start_token_id=5)
    assert_alike(told, generate(known, **call, **SHORT))
    plain = generate(t5(), **call, **SHORT)
    assert not torch.equal(told.draw_log_likelihoods, plain.draw_log_likelihoods)


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (lambda: made("Mistral", sliding_window=4), {}),
        (lambda: made("Qwen2"), {"cache_implementation": "static"}),
        (bart, {}),
    ],
    ids=["window", "static", "bart"],
)
def test_other_caches(make, options):
    model = make()
    found = generate(model, **prompts(), **SHORT, **options)
    bare = generate(model, **prompts(), **SHORT, use_cache=False)
    assert_alike(found, bare, rtol=1e-4, atol=1e-4)
    assert found.mutual_information.max() > 1e-3


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_static_cache_for_next_to_nothing(length):
    """It has no room in which its tokens could be looked for."""
    options = {"n_draws": 2, "max_new_tokens": length, "eos_token_id": None}
    found, bare = (
        generate(made("Qwen2"), **prompts(), **options, cache_implementation=kind)
        for kind in ("static", None)
    )
    assert_alike(found, bare, rtol=1e-4, atol=1e-4)


def test_a_window_that_slides_in_a_cache_of_fixed_size_is_no_function_and_said():
    model = made("Mistral", sliding_window=4)
    with pytest.warns(CaveatWarning, match="not one function draw"):
        generate(model, **prompts(), **SHORT, cache_implementation="static")


def test_models_in_bfloat16_are_judged_in_full_precision():
    call = {"input_ids": torch.tensor([[2, 5, 6]])}
    fine, rough = (generate(m, **call, **SHORT) for m in (gpt2(), gpt2().bfloat16()))
    assert (
        torch.equal(fine.tokens, rough.tokens) and rough.log_probs.dtype.itemsize == 8
    )
    torch.testing.assert_close(fine.log_probs, rough.log_probs, rtol=0, atol=0.1)


def test_bad_prompts():
    model, mask = gpt2(), torch.ones(1, 3)
    with pytest.raises(ParameterError, match="a prompt at least"):
        generate(model, input_ids=torch.zeros(0, 3, dtype=torch.long))
    with pytest.raises(ParameterError, match=r"0 to 31.* Got 99"):
        generate(model, input_ids=torch.tensor([[2, 99]]))
    with pytest.raises(InputTypeError, match="return_tensors"):
        generate(model, input_ids=[[2, 5]])
    with pytest.raises(InputTypeError, match="BertFor"):
        generate(bert("SequenceClassification"), input_ids=torch.tensor([[2, 5]]))
    with pytest.raises(ShapeError, match="attention_mask"):
        generate(model, input_ids=torch.tensor([[2, 5]]), attention_mask=mask)
    with pytest.raises(ParameterError, match="attention_mask"):
        generate(model, input_ids=torch.tensor([[0, 5]]))
    ends = of_its_configuration(gpt2(), pad_token_id=None)  # padded with its end
    with pytest.raises(ParameterError, match="attention_mask"):
        generate(ends, input_ids=torch.tensor([[3, 5], [6, 5]]))
    generate(ends, input_ids=torch.tensor([[3, 5], [3, 6]]), **SHORT)  # all begin so
    with pytest.raises(ParameterError, match=r"32 tokens.* Got 40"):
        generate(
            model, input_ids=torch.full((1, 30), 5), **{**SHORT, "max_new_tokens": 10}
        )
    hole = torch.tensor([[1, 0, 1]])
    with pytest.raises(ParameterError, match="gap"):
        generate(model, input_ids=torch.tensor([[2, 5, 6]]), attention_mask=hole)
    with pytest.raises(ParameterError, match="at least one"):
        generate(
            model, input_ids=torch.tensor([[2, 5]]), attention_mask=mask[:, :2] * 0
        )
