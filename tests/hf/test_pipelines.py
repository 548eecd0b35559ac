"""Pipelines: answers in the order given, whatever the batches."""

import pytest
import torch

import caveat
from caveat.errors import InputTypeError, ParameterError
from caveat.hf import pipeline
from tests.hf.models import TEXTS, bert, tokenizer, transformers

QUESTIONS = [{"question": "who made it ?", "context": text} for text in TEXTS]
CASES = {
    "text-classification": ("SequenceClassification", TEXTS, {}),
    "token-classification": ("TokenClassification", TEXTS, {}),
    "question-answering": ("QuestionAnswering", QUESTIONS, {}),
    "regression": ("SequenceClassification", TEXTS, {"precision": 4.0}),
}


def made(task, batch_size=3):
    head, items, options = CASES[task]
    labels = {"num_labels": 1} if task == "regression" else {}
    net = bert(head, **labels)
    options = {"n_draws": 6, "batch_size": batch_size, **options}
    return pipeline(task, net, tokenizer(), **options), items


def assert_alike(one, other):
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        one, other = list(one.values()), list(other.values())
    if isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_alike(a, b)
    else:
        expected = one if isinstance(one, str) else pytest.approx(one, abs=1e-5)
        assert other == expected


@pytest.mark.parametrize("task", CASES)
def test_answers_hang_on_neither_batches_nor_order(task):
    run, items = made(task)
    found = run(items)
    for size in (1, 8):
        assert_alike(made(task, size)[0](items), found)
    assert_alike(run(items[::-1])[::-1], found)
    assert_alike(list(run(item for item in items)), found)
    assert_alike(run(items[1]), found[1])


def test_an_answer_is_that_of_mcdropout():
    run, _ = made("text-classification")
    net = bert("SequenceClassification")
    tokens = tokenizer()(TEXTS[1], return_tensors="pt")
    mc = caveat.MCDropout(net, seed=0, analytic=False)
    expected = mc.classify(**tokens, n_draws=6)
    found = run(TEXTS[1])
    assert found["label"] == f"LABEL_{int(expected.label[0])}"
    assert list(found["probs"].values()) == pytest.approx(expected.probs[0].tolist())
    assert found["entropy"] == pytest.approx(float(expected.entropy[0]))
    assert found["mutual_information"] > 1e-4
    assert found["interval"][0] < found["score"] < found["interval"][1]


def test_a_regression_is_that_of_mcdropout():
    run, _ = made("regression")
    net = bert("SequenceClassification", num_labels=1)
    mc = caveat.MCDropout(net, seed=0, analytic=False)
    tokens = tokenizer()(TEXTS[0], return_tensors="pt")
    expected = mc.regress(
        **tokens, n_draws=6, precision=4.0, output=lambda made: made.logits
    )
    found = run(TEXTS[0])
    assert found["mean"] == pytest.approx(float(expected.mean), abs=1e-5)
    assert found["std"] > 0.5 > found["std"] - found["epistemic_std"]


def test_an_answer_is_part_of_its_context():
    run, items = made("question-answering")
    for item, found in zip(items, run(items), strict=True):
        assert item["context"][found["start"] : found["end"]] == found["answer"] != ""


def test_tokens_are_those_of_the_text():
    run, items = made("token-classification")
    words = [[token["word"] for token in found] for found in run(items)]
    assert words == [text.split() for text in items]


def test_a_streamed_data_set():
    datasets = pytest.importorskip("datasets")
    run, items = made("text-classification")
    data = datasets.Dataset.from_dict({"text": items}).to_iterable_dataset()
    assert_alike(list(run(row["text"] for row in data)), run(items))


def test_images():
    spec = transformers.ViTConfig(
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        image_size=8,
        patch_size=4,
        hidden_dropout_prob=0.2,
    )
    net = transformers.ViTForImageClassification(spec).eval()

    def processor(image, return_tensors):
        return {"pixel_values": image[None]}

    images = list(torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
    found = [
        pipeline("image-classification", net, processor, n_draws=4, batch_size=n)(
            images
        )
        for n in (1, 3)
    ]
    assert_alike(*found)
    assert len(found[0]) == 4 and found[0][0]["mutual_information"] > 0


def test_what_is_refused():
    run, _ = made("text-classification")
    with pytest.raises(InputTypeError, match="string"):
        run([3])
    with pytest.raises(InputTypeError, match="question"):
        made("question-answering")[0]("who ?")
    with pytest.raises(ParameterError, match="precision"):
        pipeline("regression", bert("SequenceClassification"), tokenizer())
    with pytest.raises(ParameterError, match="task"):
        pipeline("translation", bert("SequenceClassification"), tokenizer())
