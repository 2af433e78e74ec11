"""Keep the parts of a training run that can be committed, without a data set's text.

Reads a folder that `sleuth train RECIPE --set scale.eval_every=N` has finished. Writes into
results/first-runs/<recipe> the figures of every step, the resolved recipe, a page with the curves,
and result.json. The latter holds the evaluations before the first step and after the last, with
intervals, and their paired difference.

    python benchmarks/first_run.py runs/eval-rar results/first-runs
"""

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from sleuth.evaluation.comparing.compare import compare
from sleuth.evaluation.pages.report import write_report
from sleuth.evaluation.result import Evaluation, load_evaluation

METRICS = ("em", "f1", "valid_format", "searches", "steps", "response_tokens", "gold_recall", "refused")
"""Figures to keep, where an evaluation has them."""


def record(run: Path, folder: Path) -> dict[str, Any]:
    """Copy and summarise one run; returns what result.json holds."""
    before, after = load_evaluation(run / "eval-step-000000"), load_evaluation(run / "eval")
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    difference = compare([before.folder, after.folder], anyway=True).columns[1].differences
    result = {
        "recipe": json.loads((run / "recipe.json").read_text())["name"],
        "questions": after.n,
        "warm_start_updates": sum(row["phase"] == "warm_start" for row in rows),
        "policy_updates": sum(int(row.get("update/made", 0)) for row in rows if row["phase"] != "warm_start"),
        "before": figures(before),
        "after": figures(after),
        "difference": {name: difference[name].to_dict() for name in METRICS if name in difference},
        "train_seconds": round(sum(row.get("time/step_s", 0) for row in rows)),
        "evaluation_seconds": [round(before.seconds), round(after.seconds)],
        "versions": after.versions,
    }
    folder = folder / result["recipe"].replace("/", "-")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("metrics.jsonl", "recipe.json"):
        shutil.copyfile(run / name, folder / name)
    (folder / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    write_report(
        folder / "curves.html",
        title=f"{result['recipe']}: {after.n} held-out questions before and after reinforcement learning",
        stages={"after warm start": before.metrics, "after training": after.metrics},
        metrics=rows,
        trajectories=[],
    )
    return result


def figures(evaluation: Evaluation) -> dict[str, Any]:
    return {name: evaluation.metrics[name].to_dict() for name in METRICS if name in evaluation.metrics}


def main() -> None:
    parser = argparse.ArgumentParser(description="Keep the record of a training run.")
    parser.add_argument("run", type=Path)
    parser.add_argument("folder", type=Path, help="such as results/first-runs")
    arguments = parser.parse_args()
    print(json.dumps(record(arguments.run, arguments.folder), indent=1))


if __name__ == "__main__":
    main()
