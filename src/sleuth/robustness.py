"""Robustness: the same evaluation with questions or passages made worse step by step, as a curve.

Every level is an ordinary evaluation folder whose settings name the perturbation, so that a killed run continues
where it stopped. Questions' ids and gold answers are never changed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec

from sleuth.datasets.paraphrase import LEVELS, paraphrase
from sleuth.datasets.wrong_answers import wrong_answers
from sleuth.engines.base import Engine
from sleuth.errors import ConfigError, DataError
from sleuth.evaluation.perturbed import PerturbedCurve, Point, points_of, write_curve
from sleuth.evaluation.result import Evaluation
from sleuth.experiment import Experiment
from sleuth.registry import nearest
from sleuth.retrievers.base import Retriever
from sleuth.retrievers.bm25 import BM25
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.index_files.manifest import MANIFEST
from sleuth.retrievers.perturbed.contradicting import Contradicting
from sleuth.retrievers.perturbed.noisy import Noisy
from sleuth.retrievers.perturbed.withholding import Withholding
from sleuth.types import Question

POOL = "pool"
WRONG = "wrong-answers.jsonl"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of perturbation."""

    axis: str
    levels: tuple[int, ...]  # Levels unless others are asked for.
    charts: tuple[str, ...]  # Figures to show.
    needs: str  # Requirement on a question; others are left out.
    note: str
    retriever: Callable[[Retriever, int, str], Retriever] | None = None
    """The perturbed retriever, given the experiment's own, the level, and the pool or file of wrong answers."""


KINDS = {
    "contradiction": Kind(
        "contradicting passages for each gold passage",
        (0, 1, 2, 4),
        ("em", "followed", "refused", "wrong_answer", "contradicted"),
        "gold passages, and an answer that another question's answer of the same type can replace",
        "Each gold passage that names the answer comes with copies of its text that name a wrong answer instead: "
        "another question's answer of the same type, chosen by rule, the same in all copies. They rank before the "
        "gold passage for half of the questions, after it for the others.",
        Contradicting,
    ),
    "missing-gold": Kind(
        "gold passages withheld, at most",
        (0, 1, 2, 4),
        ("em", "refused", "wrong_answer", "unanswered", "gold_recall", "answer_recall"),
        "an answer and gold passages",
        "Gold passages are never found; the next passage takes their place. The right response is a refusal, "
        "unless another passage holds the answer (see: answer in shown passages).",
        lambda own, level, _: Withholding(own, level),
    ),
    "noise": Kind(
        "irrelevant passages added to each search result",
        (0, 2, 4, 6, 8),
        ("em", "f1", "refused", "wrong_answer", "passages_shown"),
        "text",
        "Passages drawn at random from a pool, the same for the same query in every run, are appended to each "
        "result. None supports the question or holds an answer to it.",
        Noisy,
    ),
    "paraphrase": Kind(
        "level of rewriting",
        LEVELS,
        ("em", "f1", "refused", "wrong_answer", "searches"),
        "text",
        "Fixed rules, no model: level 1 replaces some words outside names and quotations by synonyms, level 2 also "
        "puts the question as a request, level 3 also writes it in lower case without a question mark.",
    ),
}


def levels_of(kind: str, asked: Sequence[int]) -> tuple[int, ...]:
    """The levels of a kind, rising, 0 always among them. Raises ConfigError for an unknown kind or level."""
    if kind not in KINDS:
        raise ConfigError(f"unknown kind of perturbation {kind!r}{nearest(kind, KINDS)}")
    levels = tuple(sorted({0, *(asked or KINDS[kind].levels)}))
    if levels[0] < 0:
        raise ConfigError(f"a level is 0 or more, not {levels[0]}")
    if kind == "paraphrase" and levels[-1] > LEVELS[-1]:
        raise ConfigError(f"paraphrases have levels 0 to {LEVELS[-1]}, not {levels[-1]}")
    if len(levels) < 2:
        raise ConfigError("a curve needs a level other than 0")
    return levels


def measure_robustness(
    experiment: Experiment, kind: str, engine: Engine, levels: Sequence[int], pool: str
) -> PerturbedCurve:
    """Evaluate every level in `experiment.folder` and write the curve there; finished levels are read.

    `pool`: index folder that noise is drawn from; "" means the recipe's own index, or the paragraphs that come
    with all the questions. Raises ConfigError for an unknown kind or level, DataError if no question has what
    the perturbation needs.
    """
    levels, given = levels_of(kind, levels), experiment.eval_questions
    experiment.folder.mkdir(parents=True, exist_ok=True)
    wrong = wrong_answers(given) if kind == "contradiction" else {}
    needy = kind in ("contradiction", "missing-gold")
    questions = [q for q in given if not needy or (q.answerable and q.answers and q.gold_ids)]
    if kind == "contradiction":
        questions = [q for q in questions if (q.dataset, q.id) in wrong]
    if not questions:
        raise DataError(
            f"{experiment.recipe.scale.eval_data}: no question has what {kind} needs: {KINDS[kind].needs}"
        )
    if wrong:
        rows = [{"dataset": d, "id": i, "answer": answer} for (d, i), answer in sorted(wrong.items())]
        (experiment.folder / WRONG).write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
        wrong = {(q.dataset, q.id): wrong[q.dataset, q.id] for q in questions}
    source = noise_pool(experiment, pool) if kind == "noise" else str(experiment.folder / WRONG)
    own, perturbed = experiment.retriever, KINDS[kind].retriever
    retrievers = {level: perturbed(own, level, source) if perturbed and level else own for level in levels}
    for retriever in retrievers.values():
        # Open everything, such as the pool, before the first level runs for hours.
        retriever.identity()
    evaluations = []
    for level, retriever in retrievers.items():
        changed = [paraphrase(q, level) for q in questions] if kind == "paraphrase" else questions
        point = replace(experiment, perturbation={"kind": kind, "level": str(level)} if level else {})
        point.eval_questions, point.retriever = changed, retriever
        if experiment.checks_leaks:
            point.train_questions = experiment.train_questions
        evaluations.append((level, point.evaluate(f"{kind}-{level}", engine)))
    points = points_of(evaluations, KINDS[kind].charts, wrong)
    curve = PerturbedCurve(
        kind=kind,
        axis=KINDS[kind].axis,
        recipe=experiment.recipe.name,
        model=engine.name,
        source=experiment.recipe.scale.eval_data,
        points=points,
        charts=KINDS[kind].charts,
        notes=(*_notes(kind, points, experiment, questions), *_failed(evaluations)),
    )
    write_curve(experiment.folder, curve)
    return curve


def noise_pool(experiment: Experiment, asked: str = "") -> str:
    """The index folder that noise comes from; one over the questions' own paragraphs is built if need be."""
    own = experiment.retriever
    for folder in (asked, own.path if isinstance(own, BM25) else "", experiment.index):
        if folder:
            return folder
    passages = {p.id: p for question in experiment.eval_questions for p in question.passages}
    if not passages:
        raise ConfigError("noise needs passages to draw from: pass --pool DIR, built by 'sleuth index'")
    built = experiment.folder / POOL
    if not (built / MANIFEST).is_file():
        experiment.say(f"noise is drawn from the {len(passages)} paragraphs of all questions")
        build_index(passages.values(), built)
    return str(built)


def _notes(
    kind: str, points: Sequence[Point], experiment: Experiment, questions: Sequence[Question]
) -> list[str]:
    notes = [
        KINDS[kind].note,
        "Each change is from level 0 on the same questions; p is Holm's over the levels.",
    ]
    if left_out := len(experiment.eval_questions) - len(questions):
        notes.append(f"{left_out} questions are left out: they lack {KINDS[kind].needs}.")
    if not experiment.recipe.protocol.refuses:
        notes.append(f"{experiment.recipe.name} cannot refuse: its protocol has no refusal.")
    if kind == "noise":
        # Where noise had no room, the curve shows less noise than its axis.
        shown = {point.level: point.figures["passages_shown"].value for point in points}
        short = [n for n, value in shown.items() if value is not None and value - (shown[0] or 0) < 0.9 * n]
        if short:
            notes.append(
                f"NOT ALL NOISE WAS SEEN at level {', '.join(map(str, short))}: there was no room for it "
                "(see: passages shown); raise scale.max_passage_tokens and scale.max_context."
            )
    if kind == "paraphrase":
        counts = ", ".join(
            f"{sum(paraphrase(q, point.level).text != q.text for q in questions)} at level {point.level}"
            for point in points[1:]
        )
        notes.append(f"Questions whose text changed: {counts}, of {len(questions)}.")
    return notes


def _failed(evaluations: Sequence[tuple[int, Evaluation]]) -> list[str]:
    # Their zeros would pass for the model's.
    counts = ", ".join(f"{e.faults} of {e.n} at level {level}" for level, e in evaluations if e.faults)
    first = next((e.fault_examples[0] for _, e in evaluations if e.faults), "")
    return (
        [f"EPISODES FAILED FROM OUTSIDE and count as wrong: {counts}; the first: {first}"] if counts else []
    )
