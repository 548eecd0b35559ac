"""Keywords that were meant for us do not vanish in the model."""

import pytest
import torch
from torch import nn

import caveat
from caveat import MCDropout
from caveat.errors import InputTypeError
from caveat.sampling.names import meant_by

X = torch.ones(2, 3)


class Any(nn.Module):
    """Takes whatever keyword comes, as models of transformers do."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))

    def forward(self, x, **kwargs):
        return self.net(x)


class Named(Any):
    """Has a parameter of a name that others use for ours."""

    def forward(self, x, n_samples=1, **kwargs):
        return self.net(x) * n_samples


CALLS = {
    "draws": lambda model, **k: MCDropout(model).draws(X, **k),
    "regress": lambda model, **k: MCDropout(model).regress(X, precision=1.0, **k),
    "classify": lambda model, **k: MCDropout(model).classify(X, **k),
    "moments": lambda model, **k: MCDropout(model).moments(X, **k),
    "function": lambda model, **k: MCDropout(model).function(0)(X, **k),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("name", ["n_samples", "T", "random_state", "batchsize"])
def test_every_call_asks_what_was_meant(call, name):
    with pytest.raises(InputTypeError, match=r"Did you mean .*\?"):
        call(Any(), **{name: 5})


def test_so_does_a_block():
    model = Any()
    with caveat.stochastic(model), pytest.raises(InputTypeError, match="n_draws"):
        model(X, n_samples=3)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("n_samples", "n_draws"),
        ("num_samples", "n_draws"),
        ("samples", "n_draws"),
        ("T", "n_draws"),
        ("ndraws", "n_draws"),
        ("n_drwas", "n_draws"),
        ("N_DRAWS", "n_draws"),
        ("mc_samples", "n_draws"),
        ("batchsize", "batch_size"),
        ("tol", "tolerance"),
        ("tolerence", "tolerance"),
        ("random_state", "MCDropout(model, seed=...)"),
        ("seed", "MCDropout(model, seed=...)"),
        ("keep_draw", "keep_draws"),
        ("tau", "precision"),
        ("precison", "precision"),
        ("progess", "progress"),
        ("class_axis", "class_dim"),
        ("max_samples", "max_draws"),
    ],
)
def test_what_is_meant(name, meant):
    assert meant_by(name) == meant


@pytest.mark.parametrize(
    "name",
    "input_ids attention_mask token_type_ids position_ids inputs_embeds labels "
    "output_attentions output_hidden_states return_dict use_cache past_key_values "
    "pixel_values mask src_mask lengths edge_index temperature head_mask "
    "decoder_input_ids interpolate_pos_encoding training state h0 context cond".split(),
)
def test_what_models_take_is_not_ours(name):
    assert meant_by(name) is None


def test_names_of_the_model_are_the_models():
    doubled = MCDropout(Named(), seed=0).draws(X, n_samples=2, n_draws=3)
    assert doubled.shape == (3, 2, 2)
    found = MCDropout(Any(), seed=0).draws(X, labels=None, n_draws=3)
    assert found.shape == (3, 2, 2)


def test_a_tensor_is_an_input():
    found = MCDropout(Any(), seed=0).draws(X, T=torch.ones(2, 1), n_draws=3)
    assert found.shape == (3, 2, 2)


def test_a_parameter_of_another_method_is_not_swallowed():
    with pytest.raises(InputTypeError, match="classify"):
        MCDropout(Any()).classify(X, precision=1.0)
    with pytest.raises(InputTypeError, match="draws"):
        MCDropout(Any()).draws(X, tolerance=0.1)


class Masked(Any):
    """Swallows what it does not know, as a BERT does."""

    def forward(self, x, attention_mask=None, image_1=None, **kwargs):
        return self.net(x if attention_mask is None else x * attention_mask)


@pytest.mark.parametrize(
    "name", ["attention_maks", "attention_msk", "attention_masks", "atention_mask"]
)
def test_a_slip_in_a_name_of_the_model_is_no_other_input(name):
    """The mask would have been left out, and the answer be one for all tokens."""
    with pytest.raises(InputTypeError, match=r"mean attention_mask\?"):
        MCDropout(Masked()).draws(X, **{name: torch.zeros(2, 3)})


@pytest.mark.parametrize("name", ["image_2", "encoder_attention_mask", "y", "mask"])
def test_other_names_are_other_inputs(name):
    assert MCDropout(Masked()).draws(X, n_draws=2, **{name: X}).shape == (2, 2, 2)
