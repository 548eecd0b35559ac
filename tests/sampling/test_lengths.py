"""Sequences of other lengths are planned once, and drawn as if planned alone."""

import pytest
import torch

import caveat
from caveat.sampling import plans
from caveat.sampling.lengths import changed

transformers = pytest.importorskip("transformers")


def bert():
    config = transformers.BertConfig(
        vocab_size=31,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    torch.manual_seed(0)
    return transformers.BertForSequenceClassification(config).eval()


def tokens(length):
    generator = torch.Generator().manual_seed(length)
    ids = torch.randint(3, 31, (3, length), generator=generator)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def test_one_plan_for_twenty_lengths_and_the_same_draws(monkeypatch):
    made = []
    plain = plans._made
    monkeypatch.setattr(plans, "_made", lambda *args: made.append(1) or plain(*args))
    model = bert()
    mc = caveat.MCDropout(model, seed=0)
    found = {n: mc.draws(**tokens(n), n_draws=2).logits for n in range(4, 24)}
    assert len(made) == 1
    for length in (4, 9, 23):
        alone = bert()
        alone.load_state_dict(model.state_dict())
        expected = caveat.MCDropout(alone, seed=0).draws(**tokens(length), n_draws=2)
        torch.testing.assert_close(found[length], expected.logits)
    assert len(made) == 4


def t5():
    config = transformers.T5Config(
        vocab_size=31,
        d_model=8,
        d_kv=4,
        d_ff=8,
        num_layers=1,
        num_heads=2,
        decoder_start_token_id=0,
    )
    return transformers.T5ForConditionalGeneration(config).eval()


def gpt2():
    config = transformers.GPT2Config(
        vocab_size=31, n_embd=8, n_layer=1, n_head=2, n_positions=32
    )
    return transformers.GPT2LMHeadModel(config).eval()


def padded(length):
    """The second row is two tokens shorter."""
    found = tokens(length)
    found["attention_mask"][1, -2:] = 0
    return found


@pytest.mark.parametrize("make", [bert, gpt2, t5])
def test_one_plan_with_padding_for_encoder_decoder_and_both(make, monkeypatch):
    made, plain = [], plans._made
    monkeypatch.setattr(plans, "_made", lambda *args: made.append(1) or plain(*args))
    mc = caveat.MCDropout(make(), seed=0)
    for n in range(4, 14):
        own = (
            {} if make is not t5 else {"decoder_input_ids": tokens(n // 2)["input_ids"]}
        )
        mc.draws(**padded(n), **own, n_draws=1, progress=False)
    assert len(made) == 1


@pytest.mark.parametrize("make", [gpt2, t5])
def test_prompts_of_other_lengths_are_written_on_with_the_plans_of_the_first(
    make, monkeypatch
):
    made, plain = [], plans._made
    monkeypatch.setattr(plans, "_made", lambda *args: made.append(1) or plain(*args))
    model, counts = make(), []
    options = {"max_new_tokens": 3, "eos_token_id": None, "pad_token_id": 0}
    for n in (6, 9, 7):
        with caveat.stochastic(model, seed=0, draw=0):
            model.generate(**padded(n), **options, do_sample=False)
        counts.append(len(made))
    assert counts[0] == counts[-1] <= 4


def test_a_model_that_folds_tokens_into_rows_is_planned_anew(monkeypatch):
    made = []
    plain = plans._made
    monkeypatch.setattr(plans, "_made", lambda *args: made.append(1) or plain(*args))

    class Folded(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.drop = torch.nn.Embedding(31, 4), torch.nn.Dropout(0.5)

        def forward(self, ids):
            x = self.drop(self.embed(ids).view(-1, 4))
            return x.view(len(ids), -1, 4).mean(1)

    mc = caveat.MCDropout(Folded(), seed=0)
    for length in (5, 6):
        mc.draws(tokens(length)["input_ids"], n_draws=2)
    assert len(made) == 2


def test_sizes_that_part_are_not_told_apart():
    assert changed((5, 5), (7, 7)) == {5: 7}
    assert changed((5, 5), (7, 8)) is None
