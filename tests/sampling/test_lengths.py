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
