"""A run as a Hugging Face repository: the model's files, the recipe, and a model card with measured figures.

The folder is a run itself: `sleuth ask --run FOLDER` and `sleuth serve FOLDER` read it, and so does transformers.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from sleuth.agent import run_model
from sleuth.errors import ConfigError, DataError
from sleuth.evaluation.figures import HEADLINE, figure, interval, number
from sleuth.evaluation.result import Evaluation, load_evaluation
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from sleuth.storage import whole_folder

KEPT = ("recipe.json", "*.py", "metrics.jsonl")
"""Files of a run that are copied next to the model."""
CARD = """---
{head}
---

# {name}

{base}, trained with the recipe `{name}` ({source}).

## Figures

{figures}

## Use

```
sleuth index my-folder -o idx
sleuth ask "…" --run THIS_FOLDER --index idx
```
"""


def write_layout(run: Path, output: Path) -> list[Evaluation]:
    """Write the folder; returns the evaluations in its card. ConfigError without a model, or for a folder in use."""
    model, recipe = run_model(run), load_recipe(str(run))
    if output.exists() and any(output.iterdir()):
        raise ConfigError(f"{output} is not empty")
    evaluations = _evaluations(run)
    with whole_folder(output) as folder:
        shutil.copytree(model, folder, dirs_exist_ok=True)
        for file in (file for pattern in KEPT for file in run.glob(pattern)):
            shutil.copyfile(file, folder / file.name)
        (folder / "README.md").write_text(card(recipe, evaluations), encoding="utf-8")
    return evaluations


def card(recipe: Recipe, evaluations: list[Evaluation]) -> str:
    """The model card: base model, recipe, figures with 95 % intervals, and how to use it."""
    base = recipe.scale.model
    is_local = Path(base).exists()
    known = [f"base_model: {base}"] if "/" in base and not is_local else []
    names = ["evaluation", "data", *(f"{figure(name).label} ({figure(name).unit})" for name in HEADLINE), "n"]
    rows = [names, ["---"] * len(names), *map(_row, evaluations)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return CARD.format(
        head="\n".join(["library_name: transformers", "tags: [sleuth, rag, reinforcement-learning]", *known]),
        name=recipe.name,
        base=Path(base).name if is_local else base,
        source=recipe.source or "no paper",
        figures=f"Greedy decoding, 95 % intervals.\n\n{table}"
        if evaluations
        else "This run was not evaluated.",
    )


def _row(evaluation: Evaluation) -> list[str]:
    found = [
        f"{number(evaluation[name].value, name)} {interval(evaluation[name], name)}".strip()
        if name in evaluation.metrics
        else "–"
        for name in HEADLINE
    ]
    return [evaluation.folder.name, evaluation.source or "–", *found, str(evaluation.n)]


def _evaluations(run: Path) -> list[Evaluation]:
    found = []
    for path in sorted(run.glob("*/result.json")):
        try:
            found.append(load_evaluation(path.parent))
        except DataError:
            continue  # something else of that name
    return found
