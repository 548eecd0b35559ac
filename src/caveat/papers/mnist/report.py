"""The page of figure 4."""

from collections.abc import Iterator, Sequence

from caveat.papers.lenet import SOLVER, Images
from caveat.papers.mnist.measures import SHARES
from caveat.papers.mnist.records import Numbers
from caveat.papers.mnist.rotation import DIGIT, SHOWN, STEPS
from caveat.papers.mnist.scores import BY_DRAWS, BY_SOFTMAX, SCORES
from caveat.papers.page import markdown_table

PAPER_CLASSES = (1, 1, 1, 1, 1, 5, 5, 7, 7, 7, 7, 7)
ERROR_BOUND = 0.01
CERTAIN, UNNOTICED, DOUBTFUL, WHOLE_SPACE = 0.02, 0.05, 0.3, 0.9

_TITLE = "MNIST: a LeNet asked about a digit that turns (paper 001, figure 4)"
_CLAIM = (
    'The paper: "The input is classified as digit 5 for images 6-7, even though model '
    'uncertainty is extremely large"; "if the uncertainty envelope of a class is far '
    "from that of other classes' (for example the left most image) then the input is "
    'classified with high confidence"; if it intersects, "the softmax output '
    'uncertainty can be as large as the entire space"; "One would expect the model to '
    'ask an external annotator for a label". It does not say what its test error is, '
    "which 1 was turned, or how far. Its text lists 11 classes for 12 images; the list "
    "below is that of its first version, which has 12."
)
_SHOWN = (
    f"The test image of a {DIGIT} nearest to the mean training image of a {DIGIT}. As "
    "the paper gives no angles, six steps were tried; table and figure show the one "
    f"whose classes are most like the paper's, {SHOWN}° anticlockwise, and the first "
    "network."
)


def render(
    numbers: Numbers, images: Images, n_steps: int, n_draws: int
) -> Iterator[str]:
    """The parts of the page.

    Parameters
    ----------
    numbers : Numbers
        Of all networks.
    images : Images
        What they were trained on.
    n_steps : int
        Of training.
    n_draws : int
        T.

    Yields
    ------
    str
        The title, then Markdown.
    """
    yield _TITLE
    yield _CLAIM
    yield _settings(numbers, images, n_steps, n_draws)
    yield "## Test images"
    yield _test_table(numbers)
    yield _error_verdict(numbers, images)
    yield "## The digit that turns"
    yield _SHOWN
    yield _rotation_table(numbers)
    yield "Classes by all steps and networks:"
    yield _sequences(numbers)
    yield "\n".join(f"- {line}" for line in _rotation_verdicts(numbers))
    yield "All test images of a 1, turned (averages; - is clockwise):"
    yield _ones_table(numbers)
    yield "## Errors caught by setting the most uncertain images aside"
    yield _caught_table(numbers)
    yield _caught_verdict(numbers)
    yield "## Images that are no digits: AUROC against the test digits"
    yield _strange_table(numbers)
    yield _strange_verdict(numbers)


def _settings(numbers: Numbers, images: Images, n_steps: int, n_draws: int) -> str:
    return (
        f"{images.name}, {len(images.train):,} images to train on. The released LeNet "
        f"(20-50-500-10, dropout 0.5 after the ReLU) and solver: batch "
        f"{SOLVER.batch_size}, rate {SOLVER.base_rate} (1 + {SOLVER.gamma:g} "
        f"step)^-{SOLVER.power}, momentum {SOLVER.momentum}, decay "
        f"{SOLVER.weight_decay:g}, rate of biases times {SOLVER.bias_rate:g}, pixels "
        f"times 1/256. {n_steps:,} steps (`lenet_dropout_solver_10K` of the released "
        "files has 10,000, the text 1,000,000). Networks trained: "
        f"{len(numbers.seeds)}, with weights, order of images and masks of their own. "
        f"T = {n_draws} passes, one mask per pass for all images. No setting was "
        "chosen here; images come in a new order in each epoch, unlike in Caffe."
    )


def _test_table(numbers: Numbers) -> str:
    rows = [
        [
            way,
            _list([100 * v for v in numbers.values("test", way, "error")], 2),
            _list(numbers.values("test", way, "log-likelihood"), 4),
        ]
        for way in numbers.cases("test")
    ]
    return markdown_table(["prediction", "error %, each network", "mean log p"], rows)


def _error_verdict(numbers: Numbers, images: Images) -> str:
    ways = ("MC", "standard")
    worst = max(v for way in ways for v in numbers.values("test", way, "error"))
    first, second = (numbers.mean("test", way, "log-likelihood") for way in ways)
    return (
        f"- Error of at most {ERROR_BOUND:.1%} on {images.name}: "
        f"{_holds(worst <= ERROR_BOUND)} (largest {worst:.2%}).\n"
        f"- MC dropout has the larger log-likelihood: {_holds(first > second)} "
        f"({first:.4f}, averaged weights {second:.4f})."
    )


def _rotation_table(numbers: Numbers) -> str:
    cases = numbers.cases(f"rotation by {SHOWN}")
    rows = [
        [f"{case}°", *_rotation_row(numbers, case, paper)]
        for case, paper in zip(cases, PAPER_CLASSES, strict=True)
    ]
    head = ["angle", "class", "paper", "mean p", "drawn p, lowest to highest"]
    head += [*BY_DRAWS, "plain softmax"]
    return markdown_table(head, rows)


def _rotation_row(numbers: Numbers, case: str, paper: int) -> Iterator[str]:
    def value(name: str) -> float:
        return numbers.first(f"rotation by {SHOWN}", case, name)

    yield f"{value('class'):.0f}"
    yield str(paper)
    yield f"{value('probability'):.2f}"
    yield f"{value('lowest drawn'):.2f} to {value('highest drawn'):.2f}"
    for name in BY_DRAWS:
        yield f"{value(name):.2f}"
    yield f"{value('class, standard'):.0f}, {1.0 - value(BY_SOFTMAX[0]):.2f}"


def classes(numbers: Numbers, step: int, seed_place: int) -> list[int]:
    """The classes of the twelve images by one network."""
    part = f"rotation by {step}"
    return [
        int(numbers.values(part, case, "class")[seed_place])
        for case in numbers.cases(part)
    ]


def _sequences(numbers: Numbers) -> str:
    rows = []
    for step in STEPS:
        for place, seed in enumerate(numbers.seeds):
            found = classes(numbers, step, place)
            alike = sum(a == b for a, b in zip(found, PAPER_CLASSES, strict=True))
            direction = "clockwise" if step < 0 else "anticlockwise"
            rows.append(
                [
                    f"{abs(step)}° {direction}",
                    str(seed),
                    _joined(found),
                    f"{alike} of 12",
                ]
            )
    rows.append(["paper", "", _joined(PAPER_CLASSES), ""])
    return markdown_table(["step", "network", "classes", "as in the paper"], rows)


def _rotation_verdicts(numbers: Numbers) -> Iterator[str]:
    part = f"rotation by {SHOWN}"
    cases = numbers.cases(part)
    ratios = [numbers.first(part, case, "variation ratio") for case in cases]
    yield (
        f"The first image is classified with high confidence (variation ratio below "
        f"{CERTAIN}): {_holds(ratios[0] < CERTAIN)} ({ratios[0]:.2f})."
    )
    yield (
        f"Some image is highly uncertain (variation ratio above {DOUBTFUL}): "
        f"{_holds(max(ratios) > DOUBTFUL)} (largest {max(ratios):.2f}, at "
        f"{cases[ratios.index(max(ratios))]}°)."
    )
    widths = [
        numbers.first(part, case, "highest drawn")
        - numbers.first(part, case, "lowest drawn")
        for case in cases
    ]
    yield (
        f'"As large as the entire space" (drawn probabilities of the class more than '
        f"{WHOLE_SPACE} apart): {_holds(max(widths) > WHOLE_SPACE)} (widest "
        f"{max(widths):.2f}, at {cases[widths.index(max(widths))]}°)."
    )
    yield _wrong_but_sure(numbers)


def _wrong_but_sure(numbers: Numbers) -> str:
    """How many images are taken for another digit without any doubt."""
    found = [
        (label, ratio)
        for part in (f"rotation by {step}" for step in STEPS)
        for case in numbers.cases(part)
        for label, ratio in zip(
            numbers.values(part, case, "class"),
            numbers.values(part, case, "variation ratio"),
            strict=True,
        )
    ]
    ratios = [ratio for label, ratio in found if label != DIGIT]
    sure = sum(ratio < UNNOTICED for ratio in ratios)
    return (
        f"Of the {len(found)} turned images of all steps and networks {len(ratios)} "
        f"are taken for another digit than {DIGIT}; {sure} of these have a variation "
        f"ratio below {UNNOTICED}."
    )


def _ones_table(numbers: Numbers) -> str:
    names = ("classed as 1", "variation ratio", "mutual information", BY_SOFTMAX[0])
    rows = [
        [f"{case}°", *(f"{numbers.mean('all ones', case, name):.2f}" for name in names)]
        for case in numbers.cases("all ones")
    ]
    return markdown_table(["angle", *names], rows)


def _caught_table(numbers: Numbers) -> str:
    rows = [
        [f"{share:.1%}"]
        + [
            _list([100 * v for v in _caught(numbers, share, name)], 0)
            for name in SCORES
        ]
        for share in SHARES
    ]
    return markdown_table(["set aside", *(f"{s}, %" for s in SCORES)], rows)


def _caught(numbers: Numbers, share: float, name: str) -> list[float]:
    return numbers.values("set aside", f"{share:g}", name)


def _caught_verdict(numbers: Numbers) -> str:
    return "At 2 %: " + _contest(numbers, "set aside", "0.02")


def _strange_table(numbers: Numbers) -> str:
    rows = [
        [data, *(_list(numbers.values("AUROC", data, name), 4) for name in SCORES)]
        for data in numbers.cases("AUROC")
    ]
    return markdown_table(["data", *SCORES], rows)


def _strange_verdict(numbers: Numbers) -> str:
    sets = numbers.cases("AUROC")
    if not sets:
        return "The other images are absent: see `caveat data list`."
    return "\n".join(f"- {data}: {_contest(numbers, 'AUROC', data)}" for data in sets)


def wins(numbers: Numbers, part: str, case: str, name: str) -> int:
    """In how many networks a score of draws beats both scores of the plain softmax."""
    plain = [numbers.values(part, case, other) for other in BY_SOFTMAX]
    best = [max(values) for values in zip(*plain, strict=True)]
    own = numbers.values(part, case, name)
    return sum(a > b for a, b in zip(own, best, strict=True))


def _contest(numbers: Numbers, part: str, case: str) -> str:
    total = len(numbers.seeds)
    found = (
        f"{name} in {wins(numbers, part, case, name)} of {total}" for name in BY_DRAWS
    )
    return f"networks in which it beats both plain softmax scores: {', '.join(found)}."


def _holds(is_so: bool) -> str:
    return "holds" if is_so else "does not hold"


def _list(values: Sequence[float], digits: int) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)


def _joined(found: Sequence[int]) -> str:
    return " ".join(map(str, found))
