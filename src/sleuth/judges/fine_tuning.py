"""Fine-tuning of the small judge: an encoder and a new head of three labels, on pairs read from files.

Deterministic on one machine: order, initial head and dropout hang on the seed alone. A pair that
is only known not to be entailed is trained on the sum of the other two labels' probabilities.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from sleuth.encoders.loading import quiet
from sleuth.encoders.minilm import packaged_folder
from sleuth.engines.models import load_tokenizer, loading, pick_device
from sleuth.errors import ConfigError, DataError, EngineError, JudgeError
from sleuth.judges.classifier import Classifier
from sleuth.judges.labelled import LABELS, LabelledPair
from sleuth.storage import whole_folder


@dataclass(frozen=True, slots=True)
class JudgeTraining:
    """Settings of one training."""

    encoder: str = ""
    """Hugging Face name or folder of an encoder; "" = all-MiniLM-L6-v2 from its package."""
    epochs: int = 3
    batch: int = 32
    """Pairs per update."""
    lr: float = 1e-4
    """Highest learning rate, after a warm-up over a tenth of the updates; then linear to 0."""
    max_length: int = 160
    """Tokens of premise and claim together; the premise is cut."""
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch) < 1 or self.max_length < 16 or not 0 < self.lr < 1:
            raise ConfigError(f"judge training: a setting is out of range: {self}")


def train_judge(
    pairs: Sequence[LabelledPair],
    folder: Path,
    settings: JudgeTraining | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Train on `pairs` and write the judge to `folder`, which appears only when complete.

    Raises DataError unless there are both entailed and other pairs, JudgeError if the encoder
    cannot be had, ConfigError if `folder` holds something else than a judge.
    """
    settings = settings or JudgeTraining()
    if len({pair.entailed for pair in pairs}) < 2:
        raise DataError("a judge cannot learn from pairs that are all entailed, or all not")
    if folder.exists() and not (folder / "config.json").is_file():
        raise ConfigError(f"{folder} exists and is no judge: choose another folder")
    # The caller's random state is left as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        classifier = _new_classifier(settings)
        _fit(classifier, pairs, settings, say)
    _write(classifier, folder)


def partial_label_loss(logits_N_L: Tensor, allowed: Sequence[Sequence[int]]) -> Tensor:
    """Mean of −log Σ_{l allowed} P(l): cross-entropy where one label is allowed. Scalar."""
    mask = torch.zeros_like(logits_N_L, dtype=torch.bool)
    for row, labels in enumerate(allowed):
        mask[row, list(labels)] = True
    allowed_mass = logits_N_L.masked_fill(~mask, float("-inf")).logsumexp(dim=-1)
    return (logits_N_L.logsumexp(dim=-1) - allowed_mass).mean()


def _new_classifier(settings: JudgeTraining) -> Classifier:
    from transformers import AutoModelForSequenceClassification

    names = dict(enumerate(LABELS))
    try:
        name = settings.encoder or str(packaged_folder())
        tokenizer = load_tokenizer(name)
        with loading(name) as (source, options):
            model = AutoModelForSequenceClassification.from_pretrained(
                source,
                dtype=torch.float32,
                num_labels=len(LABELS),
                id2label=names,
                label2id={label: index for index, label in names.items()},
                **options,
            )
    except EngineError as error:
        raise JudgeError(str(error)) from error
    return Classifier(model.to(pick_device(settings.device)), tokenizer)


def _fit(
    classifier: Classifier,
    pairs: Sequence[LabelledPair],
    settings: JudgeTraining,
    say: Callable[[str], None],
) -> None:
    model = classifier.model.train()
    updates = settings.epochs * -(-len(pairs) // settings.batch)
    optimiser = torch.optim.AdamW(model.parameters(), lr=settings.lr, weight_decay=0.01)
    warm = max(1, updates // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda u: min((u + 1) / warm, (updates - u) / max(1, updates - warm))
    )
    total, report = 0.0, max(1, updates // 20)
    for update, batch in enumerate(_batches(pairs, settings), 1):
        logits = classifier.logits([(p.premise, p.hypothesis) for p in batch], settings.max_length)
        loss = partial_label_loss(logits, [p.allowed for p in batch])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        total += loss.item()
        if update % report == 0:
            say(f"update {update} of {updates}, loss {total / report:.3f}")
            total = 0.0
    model.eval()


def _batches(pairs: Sequence[LabelledPair], settings: JudgeTraining) -> Iterator[list[LabelledPair]]:
    """Batches of like length in random order, so that little time goes into padding."""
    chance = random.Random(settings.seed)
    for _ in range(settings.epochs):
        shuffled = list(pairs)
        chance.shuffle(shuffled)
        pool = 64 * settings.batch
        batches = []
        for start in range(0, len(shuffled), pool):
            near = sorted(shuffled[start : start + pool], key=lambda p: len(p.premise) + len(p.hypothesis))
            batches += [near[i : i + settings.batch] for i in range(0, len(near), settings.batch)]
        chance.shuffle(batches)
        yield from batches


def _write(classifier: Classifier, folder: Path) -> None:
    with whole_folder(folder) as work, quiet():
        classifier.model.save_pretrained(work)
        classifier.tokenizer.save_pretrained(work)
