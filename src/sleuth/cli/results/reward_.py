"""sleuth reward: transcripts of any trainer or model, scored with a recipe's reward.

Input rows: {"question", "answers", "passages"?, "gold_ids"?, "segments": [{"by", "text"}], "probes"?, "entailment"?}.
Output, a line each: {"total", "parts", "answer", "valid", "why"?}. A reward that scores every action
gives `parts` (and `steps`) as a list with one object per action: its kind, raw values and weights.
A row that cannot be scored has a null total and "error", and the exit status is non-zero.
"""

import argparse
import math
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from sleuth.cli.arguments import add_shared
from sleuth.cli.output import print_table, warn
from sleuth.errors import DataError, SleuthError
from sleuth.files import lines


def configure(parser: argparse.ArgumentParser) -> None:
    add_shared(parser, "recipe", "--set")
    parser.add_argument("--input", required=True, type=Path, metavar="FILE.jsonl", help="transcripts")
    add_shared(parser, "--json", help="one JSON line for each row")


def run(arguments: argparse.Namespace) -> int:
    from sleuth.recipes import load_recipe

    recipe = load_recipe(arguments.recipe).with_settings(arguments.set)
    results, failed = [], 0
    for number, line in lines(arguments.input):
        try:
            results.append(_score(recipe, line, f"{arguments.input}:{number}"))
        except SleuthError as error:
            failed += 1
            warn(str(error))
            unscored: dict[str, Any] = {"total": None, "parts": {}, "answer": None, "valid": False}
            results.append(unscored | {"why": str(error), "error": str(error)})
        if arguments.json:
            print(msgspec.json.encode(results[-1]).decode())
    if not results:
        raise DataError(f"{arguments.input}: no rows")
    if not arguments.json:
        rows = [_row(number, result) for number, result in enumerate(results, 1)]
        print_table(["row", "total", "parts", "answer", "remarks"], rows, title=recipe.name)
    return 1 if failed else 0


def _row(number: int, result: dict[str, Any]) -> list[str]:
    total, parts = result["total"], result["parts"]
    shown = "; ".join(map(str, parts)) if isinstance(parts, list) else str(parts)
    figure = "-" if total is None else f"{total:.3f}"
    return [str(number), figure, shown, str(result["answer"]), str(result.get("why", ""))]


def _score(recipe: Any, line: bytes, where: str) -> dict[str, Any]:
    from sleuth.rewards.base import Known
    from sleuth.rollouts.transcript import read_transcript
    from sleuth.rollouts.transcript_rows import read_row

    row = read_row(line, where)
    try:
        trajectory = read_transcript(recipe.protocol, row.asked, row.pieces)
        # Rewards with randomness use the seed; without one of its own every row would get the same draw.
        trajectory = replace(trajectory, seed=zlib.crc32(line))
        probes = (row.probes.rationale, row.probes.evidence) if row.probes else (None, None)
        known = Known(*probes, row.entailment)
        (score,) = recipe.reward.given(known).score([trajectory])
    except SleuthError as error:
        raise DataError(f"{where}: {error}") from error
    if score.invalid or not math.isfinite(score.total):
        raise DataError(f"{where}: the reward could not be computed: {score.invalid or score.total}")
    fault = trajectory.malformed
    result: dict[str, Any] = {"total": score.total, "parts": score.parts, "answer": trajectory.answer}
    result |= {"valid": not fault} | ({"why": fault} if fault else {})
    if recipe.reward.by_step:
        steps = [{"action": s.action, **s.parts, "weights": s.weights} for s in score.steps]
        result |= {"parts": steps, "steps": steps}
    return result
