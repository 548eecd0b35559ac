"""Pipelines: answers in the order given, whatever the batches."""

import numpy as np
import pytest
import torch

import caveat
from caveat.errors import (
    InputTypeError,
    NoStochasticSiteError,
    ParameterError,
    ShapeError,
)
from caveat.hf import pipeline
from tests.hf.models import TEXTS, bert, pieces, tokenizer, transformers, writer_head

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
    for size in (1, 64):
        assert_alike(made(task, size)[0](items), found)
    shuffled = [2, 0, 4, 1, 3]
    turned = run([items[i] for i in shuffled])
    assert_alike([turned[shuffled.index(i)] for i in range(5)], found)
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
    whole = datasets.Dataset.from_dict({"text": items, "label": range(5)})
    expected = run(items)
    assert_alike(
        list(run(row["text"] for row in whole.to_iterable_dataset())), expected
    )
    assert_alike(list(run(whole.to_iterable_dataset())), expected)  # by its "text"
    assert_alike(list(run(whole["text"])), expected)
    assert_alike(list(run(whole)), expected)
    with pytest.raises(InputTypeError, match="'review', 'label'"):
        list(run(whole.rename_column("text", "review")))


def test_frames_and_their_columns():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    run, items = made("text-classification")
    expected = run(items)
    for column in (pandas.Series(items), polars.Series(items), np.array(items)):
        assert_alike(list(run(column)), expected)
    for frame in (pandas.DataFrame, polars.DataFrame):
        assert_alike(list(run(frame({"text": items, "year": range(5)}))), expected)


def test_a_stream_is_read_some_batches_ahead_and_not_to_its_end():
    run, _ = made("text-classification", batch_size=1)
    read = []

    def endless():
        while True:
            read.append(1)
            yield "good film"

    answers = run(endless())
    next(answers)
    assert len(read) == 32


def test_probabilities_are_those_of_a_plain_loop_of_training_mode():
    """The mean of many passes with torch's own dropout, by its own error."""
    net, n_draws = bert("SequenceClassification"), 2000
    found = pipeline("text-classification", net, tokenizer(), n_draws=n_draws)(TEXTS[1])
    tokens = tokenizer()(TEXTS[1], return_tensors="pt")
    many = {name: ids.expand(n_draws, -1) for name, ids in tokens.items()}
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        drawn = net.train()(**many).logits.softmax(-1)[:, 0]
    error = (2 / n_draws) ** 0.5 * drawn.std()
    assert abs(found["probs"]["LABEL_0"] - drawn.mean()) < 5 * error


def test_pairs_in_three_ways():
    run, _ = made("text-classification")
    pair = run(("good film", "bad"))
    assert_alike(run([["good film", "bad"]])[0], pair)
    assert_alike(run({"text": "good film", "text_pair": "bad"}), pair)
    assert pair["score"] != run("good film")["score"]


def test_an_empty_string_is_what_the_tokenizer_makes_of_it():
    run, _ = made("text-classification")
    found = run(["", "good film"])
    assert_alike(found[0], run(""))
    bare = pipeline("text-classification", bert("SequenceClassification"), no_marks())
    with pytest.raises(ParameterError, match="at least one token"):
        bare("")


def no_marks():
    def call(*texts, **options):
        row = tokenizer()(*texts, add_special_tokens=False, **options)
        return {"input_ids": row["input_ids"]}  # and no mask

    return call


def test_a_tokenizer_without_mask_is_given_one():
    net = bert("SequenceClassification")
    run = pipeline("text-classification", net, no_marks(), n_draws=3)
    assert_alike(run(TEXTS), [run(text) for text in TEXTS])


@pytest.mark.parametrize("pad", [0, 31])
def test_heads_that_look_for_the_end_of_a_text(pad):
    """They go by the model's padding token, which may not be the tokenizer's."""
    net = writer_head(pad)
    run = pipeline("text-classification", net, tokenizer(), n_draws=3, batch_size=64)
    assert_alike(run(TEXTS), [run(text) for text in TEXTS])


def test_a_head_that_looks_for_an_end_it_cannot_know():
    net = writer_head(None)
    with pytest.raises(ParameterError, match=r"config\.pad_token_id"):
        pipeline("text-classification", net, tokenizer(), n_draws=3)(TEXTS)
    run = pipeline("text-classification", net, tokenizer(), n_draws=3, batch_size=1)
    assert_alike(run(TEXTS), [run(text) for text in TEXTS])


def test_a_model_that_counts_from_behind_its_padding_token():
    """RoBERTa has 34 positions for texts of 32 tokens; nobody else says so."""
    spec = transformers.RobertaConfig(
        vocab_size=32,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=34,
        pad_token_id=1,
    )
    net, words = transformers.RobertaForSequenceClassification(spec), tokenizer()
    words.model_input_names = ["input_ids", "attention_mask"]
    run = pipeline("text-classification", net, words, n_draws=2)
    run("good " * 30)
    with pytest.raises(ParameterError, match=r"32 tokens\. Got 33"):
        run("good " * 31)
    cut = pipeline("text-classification", net, words, n_draws=2, truncation=True)
    assert_alike(cut("good " * 50), run("good " * 30))


def test_a_head_that_reads_the_last_place_is_never_given_padding():
    """XLNet pads on the left; a padded place behind would be taken for the text's."""
    spec = transformers.XLNetConfig(
        vocab_size=32, d_model=8, n_layer=1, n_head=2, d_inner=16, dropout=0.3
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = transformers.XLNetForSequenceClassification(spec).eval()
    run = pipeline("text-classification", net, tokenizer(), n_draws=3, batch_size=64)
    assert_alike(run(TEXTS), [run(text) for text in TEXTS])
    call = tokenizer()(TEXTS[0], return_tensors="pt")
    drawn = caveat.MCDropout(net, seed=0).draws(**call, n_draws=3).logits
    mean = drawn[:, 0].softmax(-1).mean(0)
    assert list(run(TEXTS)[0]["probs"].values()) == pytest.approx(mean.tolist())


def test_classes_have_names():
    net = bert("SequenceClassification", num_labels=2)
    run = pipeline("text-classification", net, tokenizer(), n_draws=2)
    net.config.id2label = {"0": "bad", "1": "good"}  # as JSON has them
    assert list(run("good film")["probs"]) == ["bad", "good"]
    for names in ({0: "bad", 1: "bad"}, {0: "bad", 2: "good"}, None):
        net.config.id2label = names
        with pytest.raises(ParameterError, match="id2label"):
            run("good film")


def test_long_texts_are_cut_if_that_is_asked_for():
    net, long = bert("SequenceClassification"), "good " * 40
    with pytest.raises(ParameterError, match=r"32 tokens\. Got 42"):
        pipeline("text-classification", net, tokenizer(), n_draws=2)(long)
    run = pipeline("text-classification", net, tokenizer(), n_draws=2, truncation=True)
    assert_alike(run(long), run("good " * 30))
    assert_alike(run(["bad", long])[1], run(long))


def test_labels_that_do_not_exclude_each_other():
    """Sigmoids are averaged, label by label; by hand from the draws."""
    net = bert(
        "SequenceClassification",
        num_labels=3,
        problem_type="multi_label_classification",
    )
    found = pipeline("text-classification", net, tokenizer(), n_draws=6)(TEXTS)
    for text, answer in zip(TEXTS, found, strict=True):
        call = tokenizer()(text, return_tensors="pt")
        drawn = caveat.MCDropout(net, seed=0).draws(**call, n_draws=6).logits
        p = drawn[:, 0].double().sigmoid()
        mean = p.mean(0)
        assert list(answer["probs"].values()) == pytest.approx(mean.tolist(), abs=1e-6)
        entropy = -mean * mean.log() - (1 - mean) * (1 - mean).log()
        of_draws = (-p * p.log() - (1 - p) * (1 - p).log()).mean(0)
        told = [list(answer[k].values()) for k in ("entropy", "mutual_information")]
        assert told[0] == pytest.approx(entropy.tolist(), abs=1e-6)
        assert told[1] == pytest.approx((entropy - of_draws).tolist(), abs=1e-6)
        assert answer["labels"] == [f"LABEL_{k}" for k in range(3) if mean[k] > 0.5]
        for k, (lower, upper) in enumerate(answer["intervals"].values()):
            assert p[:, k].min() - 1e-6 <= lower <= upper <= p[:, k].max() + 1e-6
    assert abs(sum(found[0]["probs"].values()) - 1) > 1e-2
    best = pipeline("text-classification", net, tokenizer(), n_draws=6, top_k=1)
    (name,) = best(TEXTS[0])["probs"]
    assert found[0]["probs"][name] == max(found[0]["probs"].values())


def test_one_output_is_the_logit_of_one_label():
    net = bert("SequenceClassification", num_labels=1)
    found = pipeline("text-classification", net, tokenizer(), n_draws=6)(TEXTS[0])
    call = tokenizer()(TEXTS[0], return_tensors="pt")
    drawn = caveat.MCDropout(net, seed=0).draws(**call, n_draws=6).logits
    assert found["probs"] == {"LABEL_0": pytest.approx(float(drawn.sigmoid().mean()))}


def test_heads_of_other_tasks_are_refused():
    plain = {"regression": {"precision": 1.0}}
    heads = {
        "text-classification": ("TokenClassification", "QuestionAnswering"),
        "token-classification": ("SequenceClassification", "QuestionAnswering"),
        "question-answering": ("SequenceClassification", "TokenClassification"),
        "regression": ("TokenClassification", "QuestionAnswering"),
    }
    for task, wrong in heads.items():
        item = QUESTIONS[0] if task == "question-answering" else TEXTS[0]
        for head in wrong:
            options = {"n_draws": 2, **plain.get(task, {})}
            run = pipeline(task, bert(head), tokenizer(), **options)
            with pytest.raises((InputTypeError, ShapeError), match="head"):
                run(item)
    numbers = bert("SequenceClassification", problem_type="regression")
    with pytest.raises(ParameterError, match="ask for 'regression'"):
        pipeline("text-classification", numbers, tokenizer())
    classes = bert("SequenceClassification", problem_type="single_label_classification")
    with pytest.raises(ParameterError, match="ask for 'text-classification'"):
        pipeline("regression", classes, tokenizer(), precision=1.0)


@pytest.mark.parametrize("task", CASES)
def test_models_in_bfloat16(task):
    """Answers in full precision, near those of the model in float32."""
    run, items = made(task)
    head, _, options = CASES[task]
    labels = {"num_labels": 1} if task == "regression" else {}
    short = bert(head, **labels).to(torch.bfloat16)
    rough = pipeline(task, short, tokenizer(), n_draws=6, batch_size=3, **options)
    for fine, answer in zip(flat(run(items)), flat(rough(items)), strict=True):
        for name in {"score", "mean", "std", "entropy"} & set(fine):
            assert answer[name] == pytest.approx(fine[name], abs=0.1)
        if "probs" in answer:
            assert sum(answer["probs"].values()) == pytest.approx(1.0, abs=1e-6)


def flat(answers):
    return [part for a in answers for part in (a if isinstance(a, list) else [a])]


def test_nothing_and_one_item():
    for task in CASES:
        run, items = made(task)
        assert run([]) == [] and list(run(item for item in ())) == []
        assert_alike(run(items[:1]), [run(items[0])])


def test_top_k():
    net = bert("SequenceClassification", num_labels=5)
    run = pipeline("text-classification", net, tokenizer(), n_draws=4, top_k=3)
    every = pipeline("text-classification", net, tokenizer(), n_draws=4)(TEXTS[0])
    found = run(TEXTS[0])["probs"]
    best = sorted(every["probs"].values(), reverse=True)
    assert list(found.values()) == pytest.approx(best[:3]) and len(every["probs"]) == 5
    assert next(iter(found)) == every["label"]


LONG = " ".join([*TEXTS * 7, "who made a good film"])  # 110 words


def test_long_contexts_are_read_in_windows():
    """Each span once, in the window with most around it; one softmax over all."""
    net, n_draws = bert("QuestionAnswering"), 4
    item = {"question": "who made it ?", "context": LONG}
    run = pipeline("question-answering", net, tokenizer(), n_draws=n_draws, top_k=5)
    found, (start, end) = run(item), by_hand(net, item, n_draws)
    words, places = LONG.split(), []
    for a in range(len(words)):
        for b in range(a, min(a + 15, len(words))):
            chosen = max(
                (w for w in start if (a in start[w]) and (b in start[w])),
                key=lambda w: (min(a - min(start[w]), max(start[w]) - b), -w),
                default=None,
            )
            if chosen is not None:
                places.append((a, b, start[chosen][a] + end[chosen][b]))
    probs = torch.stack([each for _, _, each in places], 1).softmax(1).mean(0)
    order = probs.argsort(descending=True)[:5].tolist()
    for answer, number in zip(found["spans"], order, strict=True):
        a, b, _ = places[number]
        assert answer["answer"].split() == words[a : b + 1]
        assert LONG[answer["start"] : answer["end"]] == answer["answer"]
        assert answer["score"] == pytest.approx(float(probs[number]), abs=1e-5)
    # Batches and company do not matter, and truncation reads the first window only.
    several = run([QUESTIONS[0], item, {**item, "context": LONG[::1][:200]}])
    assert_alike(several[1], found)
    cut = pipeline("question-answering", net, tokenizer(), n_draws=4, truncation=True)
    assert cut(item)["end"] <= len(" ".join(words[:25]))


def by_hand(net, item, n_draws):
    """Logits of the words of each window: 32 tokens less 3 marks and 4 of the question.

    Windows of 25 words, each 13 after the one before.
    """
    mc, words = caveat.MCDropout(net, seed=0), item["context"].split()
    start, end = {}, {}
    for number, first in enumerate(range(0, len(words) - 12, 13)):
        own = words[first : first + 25]
        call = tokenizer()(item["question"], " ".join(own), return_tensors="pt")
        drawn = mc.draws(**call, n_draws=n_draws)
        for store, logits in ((start, drawn.start_logits), (end, drawn.end_logits)):
            rows = logits[:, 0, 6 : 6 + len(own)].double()
            store[number] = {first + i: rows[:, i] for i in range(len(own))}
    return start, end


def test_a_question_that_leaves_no_room():
    run, _ = made("question-answering")
    with pytest.raises(ParameterError, match="leaves room for 0"):
        run({"question": "good " * 40, "context": "bad"})


def test_several_answers_to_a_question():
    net = bert("QuestionAnswering")
    run = pipeline("question-answering", net, tokenizer(), n_draws=4, top_k=4)
    found = run(QUESTIONS[1])
    spans = found["spans"]
    assert len(spans) == 4 and spans[0]["score"] == found["score"]
    scores = [span["score"] for span in spans]
    assert scores == sorted(scores, reverse=True) and sum(scores) <= 1
    assert len({(span["start"], span["end"]) for span in spans}) == 4
    assert len(run(QUESTIONS[2])["spans"]) == 1  # a context of one token


def test_a_regression_with_several_outputs():
    net = bert("SequenceClassification", num_labels=3)
    run = pipeline("regression", net, tokenizer(), n_draws=4, precision=4.0)
    found = run(TEXTS)[1]
    assert len(found["mean"]) == len(found["std"]) == len(found["interval"][0]) == 3
    assert all(a < m < b for a, m, b in zip(*ends(found), strict=True))
    assert_alike(run(TEXTS[1]), found)


def ends(found):
    return found["interval"][0], found["mean"], found["interval"][1]


def test_words_are_told_by_their_first_token():
    net, text = bert("TokenClassification"), "a longish film  longest strange"
    each = pipeline("token-classification", net, pieces(), n_draws=4)(text)
    whole = pipeline("token-classification", net, pieces(), n_draws=4, words=True)
    found = whole(text)
    assert [token["word"] for token in each] == [
        "a", "long", "##ish", "film", "long", "##est", "[UNK]"
    ]  # fmt: skip
    assert [word["word"] for word in found] == text.split()
    assert all(text[w["start"] : w["end"]] == w["word"] for w in found)
    for word, number in zip(found, (0, 1, 3, 4, 6), strict=True):
        assert word["probs"] == each[number]["probs"]
    given = whole([text.split()])[0]
    assert [word["word"] for word in given] == text.split()
    assert [w["probs"] for w in given] == [w["probs"] for w in found]


def vit():
    spec = transformers.ViTConfig(
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        image_size=8,
        patch_size=4,
        hidden_dropout_prob=0.2,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return transformers.ViTForImageClassification(spec).eval()


def test_images():
    def processor(image, return_tensors):
        return {"pixel_values": image[None]}

    net = vit()
    images = list(torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
    found = [
        pipeline("image-classification", net, processor, n_draws=4, batch_size=n)(
            images
        )
        for n in (1, 3)
    ]
    assert_alike(*found)
    assert len(found[0]) == 4 and found[0][0]["mutual_information"] > 0


def test_pictures_arrays_and_files_by_an_image_processor(tmp_path):
    images = pytest.importorskip("PIL.Image")
    processor = transformers.ViTImageProcessorPil(size={"height": 8, "width": 8})
    run = pipeline("image-classification", vit(), processor, n_draws=3)
    pixels = np.random.default_rng(0).integers(0, 256, (2, 12, 10, 3), dtype=np.uint8)
    pictures = [images.fromarray(each) for each in pixels]
    expected = run(pictures)
    assert_alike(run(list(pixels)), expected)
    assert_alike(run(pictures[0]), expected[0])
    assert_alike(run(pixels[0]), expected[0])
    for i, picture in enumerate(pictures):
        picture.save(tmp_path / f"{i}.png")
    paths = [tmp_path / f"{i}.png" for i in range(2)]
    assert_alike(run(paths), expected)
    assert_alike(run([str(path) for path in paths]), expected)
    assert_alike(run(paths[1]), expected[1])
    assert_alike(run(str(paths[1])), expected[1])
    grey = pictures[0].convert("L")
    assert_alike(run(grey), run(grey.convert("RGB")))
    half = pipeline("image-classification", vit().bfloat16(), processor, n_draws=3)
    assert half(pictures[0])["score"] == pytest.approx(expected[0]["score"], abs=0.1)
    with pytest.raises(InputTypeError, match="list"):
        run(pixels)
    assert_alike(run({"image": pictures[0]}), expected[0])
    datasets = pytest.importorskip("datasets")
    whole = datasets.Dataset.from_dict({"image": pictures})
    assert_alike(list(run(whole)), expected)
    (tmp_path / "no.png").write_text("no picture")
    for bad in (tmp_path / "no.png", "nowhere.png", None, {"text": "good"}):
        with pytest.raises(InputTypeError, match="the processor says"):
            run([bad])


def test_what_is_refused():
    run, _ = made("text-classification")
    with pytest.raises(InputTypeError, match="string"):
        run([3])
    with pytest.raises(InputTypeError, match="question"):
        made("question-answering")[0]("who ?")
    with pytest.raises(InputTypeError, match="both strings"):
        made("question-answering")[0]({"question": ["who ?"], "context": ["bad"]})
    with pytest.raises(InputTypeError, match="bytes"):
        run(b"good")
    with pytest.raises(ParameterError, match="top_k is for"):
        options = {"precision": 1.0, "top_k": 2}
        pipeline("regression", bert("SequenceClassification"), tokenizer(), **options)
    foreign = bert("SequenceClassification")
    foreign.bert.embeddings.word_embeddings = torch.nn.Embedding(10, 8)
    with pytest.raises(ParameterError, match="tokenizer that the model"):
        pipeline("text-classification", foreign, tokenizer())("who made it ?")
    with pytest.raises(ParameterError, match="precision"):
        pipeline("regression", bert("SequenceClassification"), tokenizer())
    with pytest.raises(ParameterError, match="task"):
        pipeline("translation", bert("SequenceClassification"), tokenizer())
    net = bert("SequenceClassification")
    with pytest.raises(InputTypeError, match="tokenizer"):
        pipeline("text-classification", net)
    with pytest.raises(InputTypeError, match="model"):
        pipeline("text-classification", "bert-base-uncased", tokenizer())
    with pytest.raises(ParameterError, match="precision is for"):
        pipeline("text-classification", net, tokenizer(), precision=1.0)
    with pytest.raises(ParameterError, match="words is for"):
        pipeline("text-classification", net, tokenizer(), words=True)
    still = bert("SequenceClassification", hidden_dropout_prob=0.0)
    still.bert.encoder.layer[0].attention.self.dropout.p = 0.0
    with pytest.raises(NoStochasticSiteError, match="rate"):
        pipeline("text-classification", still, tokenizer())("good film")
