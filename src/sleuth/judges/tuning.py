"""Training of the small judge: an encoder and a new head, by sentence-transformers' trainer (extra `tune`).

Deterministic on one machine: the seed decides order, initial head and dropout.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from sleuth.checked import Checked, Positive
from sleuth.encoders.loading import loading
from sleuth.encoders.minilm import packaged_folder
from sleuth.errors import ConfigError, DataError, EngineError, JudgeError
from sleuth.judges.labelled import LabelledPair
from sleuth.storage import read_json, whole_folder

LABELS = {0: "entailment", 1: "not_entailment"}  # Outputs of the trained judge.


@dataclass(frozen=True)
class JudgeTraining(Checked):
    """Settings of one training."""

    encoder: str = ""
    """Hugging Face name or folder of an encoder; "" = all-MiniLM-L6-v2 from its package."""
    epochs: Positive = 3
    batch: Positive = 32
    """Pairs per update."""
    lr: Annotated[float, Meta(gt=0, lt=1)] = 1e-4
    """Highest learning rate, after a warm-up over a tenth of the updates; then linear to 0."""
    max_length: Annotated[int, Meta(ge=16)] = 160
    """Tokens of premise and claim together; the longer one is cut."""
    seed: int = 0


def _is_judge(folder: Path) -> bool:
    """Whether a folder holds a classifier, which a new judge may replace."""
    config = folder / "config.json"
    return config.is_file() and any(
        "Classification" in name for name in read_json(config).get("architectures") or ()
    )


def train_judge(
    files: Mapping[str, Sequence[LabelledPair]], folder: Path, settings: JudgeTraining | None = None
) -> None:
    """Train on the pairs of several files and write the judge to `folder`, complete or not at all.

    A batch has pairs of one file only, which are of like length. Raises DataError unless there are
    entailed and other pairs, JudgeError without the encoder or the library, and ConfigError if
    `folder` contains something other than a judge.
    """
    settings = settings or JudgeTraining()
    if len({pair.entailed for pairs in files.values() for pair in pairs}) < 2:
        raise DataError("a judge cannot learn from pairs that are all entailed, or all not")
    if folder.exists() and not _is_judge(folder):
        raise ConfigError(f"{folder} exists and is not a judge: choose another folder")
    try:
        encoder = settings.encoder or str(packaged_folder())
        with loading(encoder, f"encoder {encoder!r}", "tune"):
            import accelerate  # noqa: F401 (the trainer needs it)
            from sentence_transformers import CrossEncoder
            from transformers import set_seed

            set_seed(settings.seed)  # the new head's weights are random
            names = {"id2label": LABELS, "label2id": {name: index for index, name in LABELS.items()}}
            model = CrossEncoder(encoder, num_labels=2, max_length=settings.max_length, config_kwargs=names)
    except EngineError as error:
        raise JudgeError(str(error)) from error
    _fit(model, files, settings)
    with whole_folder(folder) as work:
        model.save_pretrained(str(work), create_model_card=False)


def _fit(model: Any, files: Mapping[str, Sequence[LabelledPair]], settings: JudgeTraining) -> None:
    from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
    from sentence_transformers.cross_encoder.losses import CrossEntropyLoss

    from datasets import Dataset, DatasetDict

    columns = ("premise", "hypothesis", "label")
    data = {}
    for name, pairs in files.items():
        rows = [(pair.premise, pair.hypothesis, 0 if pair.entailed else 1) for pair in pairs]
        data[name] = Dataset.from_dict(dict(zip(columns, zip(*rows, strict=True), strict=True)))
    updates = settings.epochs * sum(-(-len(pairs) // settings.batch) for pairs in files.values())
    with tempfile.TemporaryDirectory() as work:
        arguments = CrossEncoderTrainingArguments(
            work,
            num_train_epochs=settings.epochs,
            per_device_train_batch_size=settings.batch,
            learning_rate=settings.lr,
            weight_decay=0.01,
            warmup_steps=max(1, updates // 10),
            logging_steps=max(1, updates // 20),
            seed=settings.seed,
            save_strategy="no",
            report_to="none",
            dataloader_pin_memory=False,  # on a CPU it only warns
        )
        loss = CrossEntropyLoss(model)
        CrossEncoderTrainer(model, arguments, train_dataset=DatasetDict(data), loss=loss).train()
