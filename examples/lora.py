"""Dropout of adapters: is a fine-tuned model better with its doubt?
=================================================================

A small transformer learns to rate film reviews, without dropout. LoRA adapters with
dropout then fine-tune it to tell good from bad sentences (SST-2), and three answers for
the test sentences are compared: one pass (MAP), the mean over draws of the adapters'
dropout, and an ensemble of three adapters.

::

    python examples/lora.py --quick                  # a smoke test, seconds
    python examples/lora.py --output docs/results    # five seeds, minutes

Nothing was tuned: rank, rate, epochs and step size were fixed before the first run, and
the test sentences are only reported on. The experiment goes on where it was stopped.
"""

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForSequenceClassification

import caveat
from caveat.data.text import load_movie_ratings, load_sst2
from caveat.evaluation import accuracy, ece, log_likelihood
from caveat.papers.page import markdown_table
from caveat.papers.records import read_records, write_records
from caveat.predictive import CategoricalPredictive

N_WORDS, LONGEST, N_SEEDS = 6000, 48, 5
FULL, QUICK = (6920, 1821, 50, 3), (320, 200, 8, 2)  # to train, to test, draws, members
PAD, UNKNOWN, FIRST = 0, 1, 2
Rows = tuple[Tensor, Tensor]  # tokens and labels


@dataclass(frozen=True)
class Score:
    """One way to answer, of the adapters of one seed."""

    seed: int
    method: str
    nll: float  # nats per sentence
    ece: float  # 15 bins
    accuracy: float


@lru_cache
def vocabulary() -> dict[str, int]:
    """The most frequent words of the reviews that the base model learns from."""
    counts: Counter[str] = Counter()
    for text in load_movie_ratings().text:
        counts.update(text.split())
    return {word: 3 + i for i, (word, _) in enumerate(counts.most_common(N_WORDS - 3))}


def tokens(texts: Sequence[str]) -> Tensor:
    """Words by number, cut after 48, padded on the right."""
    words = vocabulary()
    rows = [
        [FIRST, *(words.get(word, UNKNOWN) for word in text.split()[: LONGEST - 1])]
        for text in texts
    ]
    return torch.tensor([row + [PAD] * (LONGEST - len(row)) for row in rows])


def arguments(ids: Tensor) -> dict[str, Tensor]:
    """What the model is called with; no longer than the longest row."""
    ids = ids[:, : int((ids != PAD).sum(1).max())]
    return {"input_ids": ids, "attention_mask": (ids != PAD).long()}


def trained(model: Any, rows: Rows, epochs: int, rate: float, seed: int) -> Any:
    """Adam on batches of 64, with a rate that falls to 0."""
    x, y = rows
    own = [p for p in model.parameters() if p.requires_grad]
    adam = torch.optim.Adam(own, rate)
    n_steps = epochs * (len(y) // 64)
    schedule = torch.optim.lr_scheduler.LinearLR(adam, 1.0, 0.0, n_steps)
    generator = np.random.default_rng(seed)
    model.train()
    for _ in range(epochs):
        order = torch.from_numpy(generator.permutation(len(y)))
        for batch in order[: len(y) // 64 * 64].view(-1, 64):
            adam.zero_grad()
            logits = model(**arguments(x[batch])).logits
            cross_entropy(logits, y[batch]).backward()
            adam.step()
            schedule.step()
    return model.eval()


def base_model(n_reviews: int, epochs: int) -> Any:
    """Learns the three classes of ratings from reviews, without dropout."""
    reviews = load_movie_ratings()
    order = np.random.default_rng(0).permutation(len(reviews))[:n_reviews]
    x = tokens([reviews.text[i] for i in order])
    spec = BertConfig(
        vocab_size=N_WORDS,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=LONGEST,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=3,
    )
    torch.manual_seed(0)
    model = BertForSequenceClassification(spec)
    return trained(model, (x, torch.from_numpy(reviews.label3[order])), epochs, 1e-3, 0)


def fine_tuned(base: Any, rows: Rows, epochs: int, seed: int) -> Any:
    """A head for two classes, and adapters in all linear layers of the encoder."""
    torch.manual_seed(1000 + seed)
    model = BertForSequenceClassification(BertConfig(**base.config.to_dict() | TWO))
    body = {k: v for k, v in base.state_dict().items() if "classifier" not in k}
    model.load_state_dict(body, strict=False)
    adapters = LoraConfig(
        task_type="SEQ_CLS",
        r=8,
        lora_alpha=16,
        lora_dropout=0.2,
        target_modules=["query", "key", "value", "dense"],
        exclude_modules=["bert.pooler.dense"],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # between peft and transformers
        model = get_peft_model(model, adapters)
    return trained(model, rows, epochs, 2e-3, seed)


TWO = {"id2label": {0: "bad", 1: "good"}, "label2id": {"bad": 0, "good": 1}}


def logits_of(model: Any, x: Tensor) -> Tensor:
    """One pass, without noise."""
    with torch.no_grad():
        return torch.cat([model(**arguments(part)).logits for part in x.split(256)])


def scores(models: Sequence[Any], seed: int, test: Rows, n_draws: int) -> list[Score]:
    """All three answers; the first two are those of the first model."""
    x, y = test
    mc = caveat.MCDropout(models[0], seed=seed)
    answers = {
        "MAP": CategoricalPredictive.point(logits_of(models[0], x)),
        "MC dropout of LoRA": mc.classify(
            **arguments(x), n_draws=n_draws, batch_size=256, progress=False
        ),
        "ensemble": CategoricalPredictive.from_logits(
            torch.stack([logits_of(model, x) for model in models])
        ),
    }
    return [
        Score(
            seed,
            method,
            -log_likelihood(found, y).value,
            ece(found, y).value,
            accuracy(found, y).value,
        )
        for method, found in answers.items()
    ]


def run(quick: bool, stored: Path | None) -> list[Score]:
    """The seeds that are not stored yet; each is stored when it is done."""
    known = read_records(stored, Score) if stored and stored.exists() else []
    data = load_sst2()
    n_train, n_test, n_draws, n_members = QUICK if quick else FULL
    n_seeds = 2 if quick else N_SEEDS
    train, test = (
        (tokens(part.text[:n]), torch.from_numpy(part.label[:n]))
        for part, n in ((data.train, n_train), (data.test, n_test))
    )
    done = {score.seed for score in known}
    found = list(known)
    if len(done) == n_seeds:
        return found
    base = base_model(320 if quick else 5006, 1 if quick else 3)
    epochs = 1 if quick else 2
    for seed in range(n_seeds):
        if seed in done:
            continue
        started = time.perf_counter()
        models = [
            fine_tuned(base, train, epochs, seed * n_members + member)
            for member in range(n_members)
        ]
        found += scores(models, seed, test, n_draws)
        if stored:
            stored.parent.mkdir(parents=True, exist_ok=True)
            write_records(stored, found)
        print(f"seed {seed}: {time.perf_counter() - started:.0f} s", flush=True)
    return found


def table(records: Sequence[Score]) -> str:
    """Means over the seeds, with standard errors."""
    methods = list(dict.fromkeys(record.method for record in records))
    rows = []
    for method in methods:
        own = [record for record in records if record.method == method]
        cells = [
            _with_error([getattr(record, name) for record in own])
            for name in ("nll", "ece", "accuracy")
        ]
        rows.append([method, *cells])
    return markdown_table(["answer", "NLL", "ECE", "accuracy"], rows)


def gaps(records: Sequence[Score]) -> str:
    """NLL less that of MAP, seed by seed: base model and test set are shared."""
    plain = {record.seed: record.nll for record in records if record.method == "MAP"}
    said = []
    for method in dict.fromkeys(r.method for r in records if r.method != "MAP"):
        own = [r.nll - plain[r.seed] for r in records if r.method == method]
        said.append(f"{method} {_with_error(own)}")
    return "; ".join(said)


def _with_error(values: Sequence[float]) -> str:
    error = np.std(values, ddof=1) / len(values) ** 0.5
    return f"{np.mean(values):.4f} ± {error:.4f}"


def page(records: Sequence[Score], quick: bool) -> str:
    """What was found, and no more."""
    command = "python examples/lora.py" + (" --quick" if quick else "")
    n_train, n_test, n_draws, n_members = QUICK if quick else FULL
    n_seeds = len({record.seed for record in records})
    return f"""# Dropout of LoRA adapters on SST-2

Made by `{command}`.

A BERT of two layers and 64 units learned ratings from film reviews (no dropout);
adapters of rank 8 with `lora_dropout=0.2` fine-tuned it on {n_train:,} sentences.
Test: {n_test:,} sentences. MC dropout is the mean over {n_draws} draws of the adapters
that MAP uses without noise, the ensemble that of {n_members} adapters without noise.
Means and standard errors over {n_seeds} seeds of the fine-tuning; base model and test
sentences are the same in all, so their chance is not in the errors.

{table(records)}

NLL less that of MAP, by seed: {gaps(records)}.

This is one small model, one data set and one rate, none of them tuned; it says nothing
of large models.
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is missing, print the page, and store it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows, two seeds")
    parser.add_argument("--output", type=Path, help="folder for lora.csv and lora.md")
    options = parser.parse_args(argv)
    folder, name = options.output, "lora_quick" if options.quick else "lora"
    stored = folder / f"{name}.csv" if folder else None
    records = run(options.quick, stored)
    if stored:  # with the digits of the file, from which the page can be made again
        records = read_records(stored, Score)
    text = page(records, options.quick)
    print(text)
    if folder:
        (folder / f"{name}.md").write_text(text)


if __name__ == "__main__":
    main()
