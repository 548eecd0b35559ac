"""Adapters of PEFT: what is run once, and what is said of those that are merged."""

import collections
import warnings

import pytest
import torch

import caveat
from caveat.errors import NoStochasticSiteError

transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

IDS = torch.arange(4, 24).view(4, 5)
CALL = {"input_ids": IDS, "attention_mask": torch.ones_like(IDS)}


def llama(layers=None, attention_dropout=0.0, **options):
    spec = transformers.LlamaConfig(
        vocab_size=32,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=0,
        attention_dropout=attention_dropout,
    )
    adapters = peft.LoraConfig(
        task_type="SEQ_CLS",
        r=2,
        lora_dropout=0.3,
        target_modules=["q_proj", "v_proj"],
        layers_to_transform=layers,
        init_lora_weights=False,
        **options,
    )
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft's own
        torch.manual_seed(0)
        bare = transformers.LlamaForSequenceClassification(spec)
        return peft.get_peft_model(bare, adapters).eval()


def products(run):
    """How many linear layers a call runs."""
    kinds = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=kinds) as seen:
        run()
    return collections.Counter(event.name for event in seen.events())["aten::linear"]


def test_the_base_model_below_the_first_adapter_is_run_once():
    """And so are the base layers beside it, whose input no noise has reached."""
    model, n_draws = llama(layers=[2]), 20
    mc = caveat.MCDropout(model, seed=0)
    for _ in range(2):  # then the tape has proved itself
        mc.draws(**CALL, n_draws=n_draws)
    found = products(lambda: mc.draws(**CALL, n_draws=n_draws))
    with torch.no_grad():
        one_pass = products(lambda: model(**CALL))
    # A pass: 2 blocks of 7, one of 7 and 4 of adapters, the head. Of these the noise
    # reaches the 4, the output of attention, 3 of the feed-forward layer and the head.
    assert one_pass == 14 + 11 + 1
    assert found == (14 + 3) + n_draws * 9


def several(*active):
    """Two adapters, of which the second has a dropout of its own."""
    model = llama()
    own = peft.LoraConfig(
        r=3, lora_dropout=0.5, target_modules=["q_proj"], init_lora_weights=False
    )
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peft's own
        torch.manual_seed(1)
        model.add_adapter("second", own)
    for part in model.modules():  # all at once is refused where heads are kept
        if isinstance(part, peft.tuners.lora.LoraLayer):
            part.set_adapter(list(active))
    return model.eval()


KINDS = {
    "lora": (llama, {0.3}, 6),
    "dora": (lambda: llama(use_dora=True), {0.3}, 6),
    "a head that is kept": (lambda: llama(modules_to_save=["norm"]), {0.3}, 6),
    "the second": (lambda: several("second"), {0.5}, 3),
    "both": (lambda: several("default", "second"), {0.3, 0.5}, 9),
}


@pytest.mark.parametrize("kind", KINDS)
def test_draws_are_those_of_training_mode_for_the_adapters(kind):
    make, rates, n_sites = KINDS[kind]
    model, n_draws = make(), 2000
    sites = caveat.audit(model, **CALL)
    assert {site.rate for site in sites} == rates and len(sites) == n_sites
    assert sites.notes == ()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(1)
        many = {name: value[:1].expand(n_draws, -1) for name, value in CALL.items()}
        plain = model.train()(**many).logits
    model.eval()
    first = {name: value[:1] for name, value in CALL.items()}
    drawn = caveat.MCDropout(model, seed=0).draws(**first, n_draws=n_draws).logits[:, 0]
    error = (2 / n_draws) ** 0.5 * plain.std(0)
    assert ((drawn.mean(0) - plain.mean(0)).abs() < 5 * error).all()
    assert drawn.std(0).tolist() == pytest.approx(plain.std(0).tolist(), rel=0.15)


def test_a_merged_adapter_is_named():
    model = llama(attention_dropout=0.2)
    assert caveat.audit(model, **CALL).notes == ()
    model.merge_adapter()
    sites = caveat.audit(model, **CALL)
    assert not any("lora" in site.path for site in sites)
    assert "6 of 6 adapters are merged" in str(sites) and "unmerge_adapter" in str(
        sites
    )
    model.unmerge_adapter()
    assert caveat.audit(model, **CALL).notes == ()


def test_without_other_noise_the_error_says_it():
    model = llama()
    model.merge_adapter()
    with pytest.raises(NoStochasticSiteError, match="merged"):
        caveat.MCDropout(model).draws(**CALL, n_draws=2)
    model.unmerge_adapter()
    with model.disable_adapter():
        with pytest.raises(NoStochasticSiteError, match="switched off"):
            caveat.MCDropout(model).draws(**CALL, n_draws=2)
