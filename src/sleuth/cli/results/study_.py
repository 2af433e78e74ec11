"""sleuth study: the papers' tables and figures, listed, planned, and run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sleuth.cli.arguments import add_shared
from sleuth.cli.output import print_json, print_table, warn

if TYPE_CHECKING:
    from sleuth.studies.plan import Job, Place, Tokens
    from sleuth.studies.study import Study

TERA = 1e12


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    name = (
        "study such as eval-rar/table-2, or a .py file that defines STUDY; without one, list all; "
        "'study published' and 'study robustness' have arguments of their own"
    )
    parser.add_argument("name", nargs="?", default="", help=name)
    parser.add_argument("--scale", choices=["cpu", "paper"], default="cpu", help="default: cpu")
    parser.add_argument("--dry-run", action="store_true", help="print the plan with tokens and hours")
    parser.add_argument(
        "--page", action="store_true", help="run nothing, write the page of what has been run"
    )
    speed = "speed for the hours, in 10¹² operations a second (default: measured here)"
    parser.add_argument("--tflops", type=float, default=0.0, metavar="T", help=speed)
    parser.add_argument("--seeds", default="0", metavar="0,1,2", help="training seeds (default: 0)")
    parser.add_argument("--llm-judge", default="", metavar="M", help="LLM for the measure llm_judge")
    lessons = (
        "folder of transcripts to imitate, a/b.jsonl for the recipe a/b, as 'sleuth demonstrate' writes them"
    )
    parser.add_argument("--demonstrations", type=Path, metavar="DIR", help=lessons)
    add_shared(parser, "--set", "--index")
    add_shared(parser, "--output", default=Path("runs/studies"), help="folder of all studies' runs and pages")
    add_shared(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    """List the studies, print one's plan, or run what is missing of it and write its page."""
    from sleuth.errors import ConfigError
    from sleuth.studies import all_studies, load_study
    from sleuth.studies.plan import Place, plan

    seeds = tuple(int(s) for s in arguments.seeds.split(",") if s.strip().isdecimal())
    if len(set(seeds)) != arguments.seeds.count(",") + 1:
        raise ConfigError(f"--seeds must be different whole numbers such as 0,1,2, not {arguments.seeds!r}")
    if not arguments.tflops >= 0:
        raise ConfigError(f"--tflops must not be negative, not {arguments.tflops}")
    lessons = arguments.demonstrations
    if lessons and not lessons.is_dir():
        raise ConfigError(f"--demonstrations {lessons} is not a folder")
    place = Place(arguments.output / arguments.scale, arguments.scale, seeds, tuple(arguments.set), lessons)
    if not arguments.name:
        return _list(all_studies(), place, arguments.json)
    study = load_study(arguments.name)
    if (reason := study.why_not(arguments.scale)) and not arguments.page:
        raise ConfigError(f"{study.name} cannot be run: {reason}")
    jobs = plan(study, place)
    if arguments.dry_run:
        return _print_plan(study, jobs, arguments)
    return _run(study, place, jobs, arguments)


def _list(studies: Sequence[Study], place: Place, as_json: bool) -> int:
    from dataclasses import replace

    from sleuth.studies.plan import plan, total
    from sleuth.studies.study import SCALES

    rows = []
    for study in studies:
        costs: dict[str, Any] = {}
        for scale in SCALES:
            reason = study.why_not(scale)
            tokens = total(plan(study, replace(place, scale=scale))) if not reason else None
            costs[scale] = {"rows": len(study.runs(scale)), "tokens": tokens and sum(tokens), "lacks": reason}
        rows.append({"study": study.name, "title": study.title, "rows": len(study.rows), **costs})
    if as_json:
        print_json(rows)
        return 0
    shown = [
        [row["study"], row["title"], *(_cost(row[scale], row["rows"]) for scale in SCALES)] for row in rows
    ]
    print_table(["study", "title", *(f"{s}: rows, most tokens" for s in SCALES)], shown)
    return 0


def _cost(cost: dict[str, Any], rows: int) -> str:
    if cost["lacks"]:
        return str(cost["lacks"])
    return f"{cost['rows']} of {rows}, {cost['tokens'] / 1e6:,.0f} M"


def _print_plan(study: Study, jobs: Sequence[Job], arguments: argparse.Namespace) -> int:
    from sleuth.studies.record import changed
    from sleuth.studies.run import is_done
    from sleuth.training.forecast import speed

    flops = arguments.tflops * TERA or speed()
    lines: list[dict[str, Any]] = [
        {
            "row": job.row,
            "job": f"{job.kind} {job.recipe.name}",
            "data": job.recipe.scale.train_data
            if job.kind == "train"
            else f"{job.dataset} {job.level or ''}".strip(),
            "model": job.recipe.scale.model,
            "tokens": sum(job.tokens) if job.bounded else None,
            "hours": hours(job.tokens, job.recipe.scale.model, flops) if job.bounded else None,
            "done": is_done(job),
            "changed": changed(job, arguments.index),
        }
        for job in jobs
    ]
    left = [line for line in lines if not line["done"]]
    missing = {study.label(row): why for row in study.rows if (why := row.missing(arguments.scale))}
    if arguments.json:
        print_json({"study": study.name, "scale": arguments.scale, "jobs": lines, "missing": missing})
        return 0
    shown = [
        [
            line["row"],
            line["job"],
            line["data"][:60],
            "unknown" if line["tokens"] is None else f"{line['tokens'] / 1e6:,.1f} M",
            _hours(line["hours"]),
            "made with another recipe or index" if line["changed"] else "done" if line["done"] else "",
        ]
        for line in lines
    ]
    print_table(
        ["row", "job", "data", "most tokens", "most hours", ""], shown, title=f"{study.name}: {study.title}"
    )
    print(f"left: {len(left)} of {len(lines)} jobs, {_bound(left)}")
    for label, reason in missing.items():
        print(f"not run: {label}: {reason}")
    return 0


def _bound(left: Sequence[dict[str, Any]]) -> str:
    """Upper bound of the work that is left, as far as it is known."""
    tokens, known = ([line[n] for line in left if line[n] is not None] for n in ("tokens", "hours"))
    line = f"at most {sum(tokens) / 1e6:,.1f} M tokens and {sum(known):,.1f} hours"
    if unsized := len(left) - len(tokens):
        line += f", without {unsized} on data of unknown size"
    if untimed := len(tokens) - len(known):
        line += f"; {untimed} of unknown speed"
    return line


def hours(tokens: Tokens, model: str, flops: float) -> float | None:
    """Maximum hours if a model reaches half of `flops` operations per second; None for a model of unknown size."""
    import re

    found = re.search(r"(\d+(?:\.\d+)?)\s*([bm])\b", model.lower().replace("_", "-"))
    if found is None:
        return None
    parameters = float(found[1]) * (1e9 if found[2] == "b" else 1e6)
    return tokens.passes * parameters / (0.5 * flops) / 3600


def _hours(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}"


def _run(study: Study, place: Place, jobs: Sequence[Job], arguments: argparse.Namespace) -> int:
    from sleuth.errors import ConfigError
    from sleuth.judges.llm import LLMJudge
    from sleuth.storage import write_json
    from sleuth.studies.outcome import outcome
    from sleuth.studies.page import also_published, table, write_study
    from sleuth.studies.record import all_changed
    from sleuth.studies.run import run_jobs

    judge = LLMJudge(arguments.llm_judge) if arguments.llm_judge else None
    if judge and (arguments.page or "llm_judge" not in study.measures):
        without = "--page runs nothing" if arguments.page else f"{study.name} has no such figure"
        raise ConfigError(f"--llm-judge has no use: {without}")
    index = arguments.index
    failed = all_changed(jobs, index or None) if arguments.page else run_jobs(jobs, index, warn, judge)
    result = outcome(study, place, failed)
    judged = [f for row in result["rows"] for f in row["figures"] if f["measure"] == "llm_judge"]
    if judged and not any(f["n"] for f in judged):
        result["notes"].append("The LLM judge was not asked: --llm-judge.")
    path = arguments.output / f"{study.name.replace('/', '-')}-{place.scale}.html"
    write_study(path, result)
    write_json(path.with_suffix(".json"), result)
    if arguments.json:
        print_json(result)
    else:
        for grid in filter(None, (table(result), also_published(result))):
            print_table(grid.headers, grid.rows, title=grid.title)
        print(f"page: {path}")
    return 1 if failed else 0
