"""Given texts, judged by all draws: numbers by hand, whatever the batches."""

import math

import pytest
import torch

import caveat
from caveat.errors import InputTypeError, NoStochasticSiteError, ParameterError
from caveat.hf import score
from tests.hf.models import (
    TEXTS,
    bert,
    gpt2,
    llama_lora,
    made,
    t5,
    tokenizer,
    transformers,
)

T = 5
PAIRS = [(TEXTS[i], TEXTS[-1 - i]) for i in range(5)]
MODELS = {"gpt2": (gpt2, TEXTS), "llama": (llama_lora, PAIRS), "t5": (t5, PAIRS)}
FIELDS = ("log_probs", "entropy", "mutual_information", "draw_log_likelihoods")


def plain(model, text):
    """log p_s of every vocabulary entry under each draw, of one text alone."""
    words, mc = tokenizer(), caveat.MCDropout(model, seed=0)
    if isinstance(text, str):
        ids = words(text)["input_ids"]
        call = {"input_ids": torch.tensor([ids])}
        first, judged = 0, ids[1:]
    elif model.config.is_encoder_decoder:
        judged = words(text[1])["input_ids"]
        call = {
            "input_ids": torch.tensor([words(text[0])["input_ids"]]),
            "decoder_input_ids": torch.tensor([[0, *judged]]),
        }
        first = 0
    else:
        given = words(text[0])["input_ids"]
        judged = words(text[1], add_special_tokens=False)["input_ids"]
        call = {"input_ids": torch.tensor([given + judged])}
        first = len(given) - 1
    with torch.no_grad():
        logits = torch.stack([mc.function(s)(**call).logits[0] for s in range(T)])
    rows = logits[:, first : first + len(judged)].double()
    return rows.log_softmax(-1), torch.tensor(judged)


@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_those_of_the_plain_loop(name):
    make, texts = MODELS[name]
    model = make()
    found = score(model, texts, tokenizer(), n_draws=T, batch_size=3)
    assert len(found) == len(texts)
    for text, own in zip(texts, found, strict=True):
        log_probs, judged = plain(model, text)
        assert own.tokens.tolist() == judged.tolist()
        mean = log_probs.exp().mean(0)
        picked = log_probs[:, range(len(judged)), judged]
        entropy = -(mean * mean.log()).sum(-1)
        of_draws = -(log_probs.exp() * log_probs).sum(-1).mean(0)
        close = {"rtol": 1e-4, "atol": 1e-5}
        torch.testing.assert_close(own.log_probs, picked.exp().mean(0).log(), **close)
        torch.testing.assert_close(own.entropy, entropy, **close)
        torch.testing.assert_close(own.mutual_information, entropy - of_draws, **close)
        together = picked.sum(-1).exp().mean().log().item()  # E190, as it is written
        assert own.log_likelihood == pytest.approx(together, abs=1e-4)
        assert own.perplexity == pytest.approx(math.exp(-together / len(judged)), 1e-4)
        assert own.mutual_information.max() > 1e-3


@pytest.mark.parametrize("name", MODELS)
def test_neither_batches_nor_order_nor_company_matter(name):
    make, texts = MODELS[name]
    model, words = make(), tokenizer()
    found = score(model, texts, words, n_draws=3, batch_size=64)
    others = [
        score(model, texts, words, n_draws=3, batch_size=1),
        score(model, texts[::-1], words, n_draws=3, batch_size=3)[::-1],
        [score(model, text, words, n_draws=3) for text in texts],
    ]
    for other in others:
        for one, same in zip(found, other, strict=True):
            for field in FIELDS:
                left, right = getattr(one, field), getattr(same, field)
                torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-5)


def test_a_mean_of_wholes_is_no_product_of_means():
    own = score(gpt2(), TEXTS[1], tokenizer(), n_draws=T)
    assert own.log_likelihood > float(own.draw_log_likelihoods.mean())  # Jensen
    assert own.log_likelihood != pytest.approx(float(own.log_probs.sum()), abs=1e-3)


def test_targets_are_written_in_the_words_of_the_target():
    """Translators have two vocabularies, or a mark for the language."""

    def two(text=None, text_target=None):
        ids = tokenizer()(text if text_target is None else text_target)["input_ids"]
        return {"input_ids": ids if text_target is None else [31, *ids]}

    own = score(t5(), ("good film", "bad"), two, n_draws=2)
    assert own.tokens.tolist() == [31, *tokenizer()("bad")["input_ids"]]


def test_a_column_of_texts():
    pandas = pytest.importorskip("pandas")
    found = score(gpt2(), pandas.Series(TEXTS), tokenizer(), n_draws=2)
    expected = score(gpt2(), TEXTS, tokenizer(), n_draws=2)
    assert [one.log_likelihood for one in found] == [
        one.log_likelihood for one in expected
    ]


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:Position ids")
def test_prompts_that_were_tuned_are_no_tokens_of_the_text():
    """Their logits come first; the others are those of a pass over all of them."""
    peft = pytest.importorskip("peft")
    spec = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = peft.get_peft_model(gpt2(), spec).eval()
    own = score(model, ("it is", "dull"), tokenizer(), n_draws=3)
    ids = tokenizer()("it is")["input_ids"]
    mc = caveat.MCDropout(model, seed=0)
    with torch.no_grad():
        drawn = torch.stack(
            [mc.function(s)(input_ids=torch.tensor([ids])).logits[0] for s in range(3)]
        )
    assert drawn.shape[1] == len(ids) + 3
    mean = drawn[:, -1].double().softmax(-1).mean(0)
    assert own.log_likelihood == pytest.approx(float(mean[own.tokens[0]].log()), 1e-4)


def test_a_model_that_reads_both_ways_is_refused_and_a_decoder_is_not():
    """Both configurations say that it is no decoder; what they do tells them apart."""
    both_ways = transformers.BertLMHeadModel(bert("MaskedLM").config).eval()
    with pytest.raises(InputTypeError, match="left to right"):
        score(both_ways, "good film", tokenizer(), n_draws=2)
    decoder = made("GPTNeoX", hidden_dropout=0.3)
    assert decoder.config.is_decoder is False
    assert score(decoder, "good film", tokenizer(), n_draws=2).log_likelihood < 0


def test_what_is_refused():
    words, model = tokenizer(), gpt2()
    with pytest.raises(InputTypeError, match="list"):
        score(model, {"text": "good"}, words)
    with pytest.raises(InputTypeError, match="string"):
        score(model, [3], words)
    with pytest.raises(InputTypeError, match="pairs"):
        score(t5(), "good film", words)
    with pytest.raises(ParameterError, match="token"):
        score(model, ("good", ""), words)
    with pytest.raises(ParameterError, match=r"32 tokens.* Got 61"):
        score(model, "good " * 60, words)
    still = gpt2()
    for part in still.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    with pytest.raises(NoStochasticSiteError):
        score(still, "good film", words)
