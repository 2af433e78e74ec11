"""Eight towns and their mayors: passages, an index, and questions that a tiny model trains on."""

import json
from pathlib import Path
from typing import Any

from sleuth.corpora import open_corpus
from sleuth.recipe import Recipe
from sleuth.retrievers.bm25_index.build import build_index

CITIES = ["Arlen", "Brill", "Cosk", "Dorn", "Elvet", "Farn", "Gorse", "Hilt"]


def questions() -> list[dict[str, Any]]:
    """One question for every town."""
    return [
        {
            "id": f"q{i}",
            "question": f"Who is the mayor of {city}?",
            "answers": [f"{city}son"],
            "gold_ids": [f"p{i}"],
            "hops": [{"query": f"mayor {city}", "passage_id": f"p{i}", "answer": f"{city}son"}],
        }
        for i, city in enumerate(CITIES)
    ]


def small(recipe: Recipe, model: Path, folder: Path, **changes: Any) -> Recipe:
    """The recipe with a tiny model and towns' data, so that it trains in seconds."""
    sizes = {"max_steps": 2, "max_new_tokens": 12, "max_passage_tokens": 200, "max_context": 900}
    sizes |= {"warm_start_examples": 6, "warm_start_batch": 2, "warm_start_epochs": 1}
    sizes |= {"steps": 2, "batch": 2}
    data = {
        f"{part}_data": f"jsonl:{folder / name}.jsonl" for part, name in (("train", "train"), ("eval", "dev"))
    }
    return recipe.sized(**{"model": str(model), **data, **sizes, **changes})


def write_towns(folder: Path, **files: list[dict[str, Any]]) -> Path:
    """Write corpus.jsonl, index/ and NAME.jsonl for each of `files`; returns the folder."""
    passages = [
        {"id": f"p{i}", "title": city, "text": f"The mayor of {city} is Mr {city}son."}
        for i, city in enumerate(CITIES)
    ]
    for name, rows in {"corpus": passages, **files}.items():
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    build_index(open_corpus(str(folder / "corpus.jsonl")).passages(lambda _: None), folder / "index")
    return folder
