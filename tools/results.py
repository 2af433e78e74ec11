"""docs/results.md and docs/runs.md from the JSON in results/: `python tools/results.py`.

Every section is a folder of results/. Its tables come from the JSON, its words from the folder's note.md on the first
page and details.md on the second.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from sleuth.errors import ConfigError
from sleuth.evaluation.statistics import bootstrap_mean
from sleuth.recipe import Recipe

ROOT = Path(__file__).parents[1]
HEAD = """# Results

Written by `python tools/results.py` from `results/`; do not edit. SmolLM2-135M-Instruct on two shared CPU cores unless stated
otherwise, greedy evaluation, 95 % bootstrap intervals over questions, differences paired. EM and rates in %. Questions were held out
by construction (Factbook: no shared gold passages; benchmarks: the published splits) and checked for leaks by id and wording.
[Runs](runs.md) has every training run with its command, seed and commit, and what was tried without success.
"""
RUNS_HEAD = """# Runs

Written by `python tools/results.py` from `results/`; do not edit. Every training run that [the results](results.md) rest on, trials of other
settings among them. Runs without a commit were recorded before the JSON named it.
"""
BEST = {
    "Eval-RAR, 48 steps on 640 candidates and 48 on 640 others (rollouts of these)": "eval-rar-cpu-2-1280-unmeasured",
    "Search-R1, 48 more steps on 640 others (rollouts of these)": "search-r1-cpu-1-1280-unmeasured",
    "Search-R1, 48 steps on 640 candidates": "search-r1-cpu-1-640-unmeasured",
    "Search-R1, 160 measured candidates": "search-r1-cpu-1-160-candidates",
    "Search-R1, another seed of these": "search-r1-cpu-2-160-candidates",
    "EviNote-RAG, 160 measured candidates": "evinote-rag-cpu-2-160-candidates",
    "EviNote-RAG, another seed, 48 steps on 640 candidates": "evinote-rag-cpu-1-640-unmeasured",
    "AutoRefine, the present recipe": "autorefine-cpu-2-96-steps",
    "AutoRefine, 160 measured candidates": "autorefine-cpu-2-160-candidates",
    "EVO-RAG, paid for the answer alone, 96 steps": "evo-rag-cpu-2-answer-96-steps",
    "EVO-RAG, the same, 120 measured candidates": "evo-rag-cpu-2-answer-alone-48-steps",
    "EVO-RAG, its printed reward": "evo-rag-cpu-0-grpo-80-demonstrations",
    "ARENA, the present recipe": "arena-cpu-2-96-steps",
    "ARENA, another seed of these": "arena-cpu-1-96-steps",
    "EviOmni, the present recipe": "eviomni-cpu-1-no-length-96-steps",
}
"""Runs from the best warm start of each method, second seeds below the first."""
DEMOS = ("measured-80", "test-questions", "negatives")
"""Prefixes of the demo's runs: its present recipe, those models on the test split, 40 measured questions."""
KINDS = ["all", "kinds trained on", "other kinds", "bridge", "intersection", "compositional", "inference"]
KINDS += ["comparison", "yesno", "unanswerable"]
PERCENT = ("em", "f1", "valid_format")
Found = dict[str, Any]


def interval(found: Found | None, name: str = "em") -> str:
    """Value and interval; "–" where there is none."""
    if not found or found.get("value") is None:
        return "–"
    scale, digits = (100, 1) if name in PERCENT else (1, 2)
    if found["low"] is None:  # a single question
        return f"{scale * found['value']:.{digits}f}"
    value, low, high = (scale * found[key] for key in ("value", "low", "high"))
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def gain(found: Found | None, name: str = "em") -> str:
    """A difference with its sign and interval, bold where the interval leaves zero out."""
    if not found or found.get("value") is None:
        return "–"
    scale = 100 if name in PERCENT else 1
    if found["low"] is None:
        return f"{scale * found['value']:+.1f}".replace("-", "−")
    value, low, high = (scale * found[key] for key in ("value", "low", "high"))
    text = f"{value:+.1f} [{low:+.1f}, {high:+.1f}]".replace("-", "−")
    return f"**{text}**" if low > 0 or high < 0 else text


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Lines of a Markdown table."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)] + [""]


def learning_runs(folder: Path) -> dict[str, Found]:
    """Runs of benchmarks/learn.py by name: a warm start, and the arms that were trained from it, if any."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def learning(folder: Path) -> Iterator[str]:
    """Table rows: each method from its best warm start, and methods under one budget on a GPU."""
    methods = {name: run for name, run in learning_runs(folder).items() if "method" in run["arms"]}
    yield from side_by_side(methods)
    yield from one_budget({name: run for name, run in methods.items() if "-gpu-" in name})


def all_learning(folder: Path) -> Iterator[str]:
    """Table rows: the gain of each run's arms over its warm start."""
    runs = learning_runs(folder)
    methods = {name: run for name, run in runs.items() if "method" in run["arms"]}
    rows = []
    for name, run in runs.items():
        before = run["arms"]["warm-start"]["all"]
        start = [str(run["recipe"]["scale"].get("warm_start_epochs", 1)), interval(before["em"])]
        trained = {arm: found for arm, found in run["arms"].items() if arm != "warm-start"}
        if not trained:
            rows.append([name, str(before["n"]), "0", *start, "–", "–", "–"])
        for arm, found in trained.items():
            after = found["all"]
            gains = [gain(after["em"]["gain"]), gain(after["valid_format"]["gain"], "valid_format")]
            title = name if arm == "method" else f"{name}: {arm}"
            size = [str(before["n"]), str(rollouts(found))]
            rows.append([title, *size, *start, interval(after["em"]), *gains])
    head = ["run", "questions", "rollouts", "epochs of the warm start", "its EM", "EM", "gain"]
    yield from table([*head, "gain in valid format"], rows)
    yield from sampled(methods)
    yield from seeds_together(methods)


def sampled(runs: dict[str, Found]) -> Iterator[str]:
    """Table rows: the share of right ones among several sampled answers to a question, and of questions with one."""
    rows = []
    for name, run in runs.items():
        before, after = (run["arms"][arm].get("samples") for arm in ("warm-start", "method"))
        if before and after and "gain" in after["all"]["mean"]:
            size = f"{after['n']} × {after['k']}"
            means = [interval(each["all"]["mean"]) for each in (before, after)]
            passes = [interval(each["all"]["pass"]) for each in (before, after)]
            rows.append([name, size, *means, gain(after["all"]["mean"]["gain"]), *passes])
    if rows:
        yield "Answers sampled at temperature 1: the share of right ones (mean@k), and of questions with a right one (pass@k), before and after training.\n"
        head = ["run", "questions × k", "mean@k before", "mean@k after", "gain"]
        yield from table([*head, "pass@k before", "pass@k after"], rows)


def learning_by_kind(folder: Path) -> Iterator[str]:
    """The runs one by one: command, EM by kind of question and sampled rewards."""
    for name, run in learning_runs(folder).items():
        arms = run["arms"]
        kinds = [kind for kind in KINDS if kind in arms["warm-start"]]
        yield f"### {name}: {run['recipe']['name']}, seed {run['seed']}\n"
        yield f"`{run['command']}` (commit {run['commit'] or 'unknown'}), {arms['warm-start']['all']['n']} questions of `{run['data']}`\n"
        head = ["EM", *(f"{kind} (n {arms['warm-start'][kind]['n']})" for kind in kinds), "valid format"]
        rows = []
        for arm, found in arms.items():
            shown = [interval(found[kind]["em"]) for kind in kinds] + [
                interval(found["all"]["valid_format"], "valid_format")
            ]
            rows.append([arm, *shown])
            if "gain" in found["all"]["em"]:
                gains = [gain(found[kind]["em"]["gain"]) for kind in kinds]
                rows.append(["gain", *gains, gain(found["all"]["valid_format"]["gain"], "valid_format")])
        yield from table(head, rows)
        for arm, found in arms.items():
            if curve := found.get("curve"):
                rewards = ", ".join(f"{step['reward/total']:.2f}" for step in curve)
                yield f"{arm}: sampled reward by step {rewards}; {rollouts(found)} rollouts, {measured(found)} of them before the first step.\n"


def side_by_side(runs: dict[str, Found]) -> Iterator[str]:
    """Table rows: the run of each method from its best warm start."""
    rows = []
    for title, name in BEST.items():
        scale, data = runs[name]["recipe"]["scale"], runs[name]["data"]
        before, after = (runs[name]["arms"][arm]["all"] for arm in ("warm-start", "method"))
        size = f"{before['n']} of `{data}`, {rollouts(runs[name]['arms']['method'])}"
        epochs = str(scale.get("warm_start_epochs", 1))
        chains = mean_gain([runs[name]], ("bridge", "intersection"))
        gains = [gain(after["em"]["gain"]), gain(chains), gain(after["gold_recall"]["gain"])]
        lost = ", ".join(losses(runs[name]["arms"]["method"])) or "none"
        rows.append(
            [f"{title}, `{name}`", size, epochs, interval(before["em"]), *gains, mean_at_k(runs[name]), lost]
        )
    head = ["method and run", "questions, rollouts", "epochs of the warm start", "its EM", "gain in EM"]
    head += ["on bridge and intersection questions", "in gold passages shown", "in mean@4", "kinds that lose"]
    yield from table(head, rows)


def losses(arm: Found) -> list[str]:
    """Kinds of question whose EM falls, with the interval below zero."""
    return [kind for kind in KINDS if kind in arm and arm[kind]["em"]["gain"]["high"] < 0]


def one_budget(runs: dict[str, Found]) -> Iterator[str]:
    """Table rows: methods that were trained on a GPU with the same number of steps and questions a step."""
    rows = []
    for run in runs.values():
        before, after = (run["arms"][arm] for arm in ("warm-start", "method"))
        gains = [gain(after[kinds]["em"]["gain"]) for kinds in ("all", "kinds trained on", "other kinds")]
        counts = [str(rollouts(after)), str(live(after))]
        start = [f"`{run['recipe']['name']}`", *counts, interval(before["all"]["em"])]
        rows.append([*start, *gains, mean_at_k(run), seconds(after)])
    if rows:
        yield "Methods under one budget on a GPU (H200): 20 steps of 32 questions × 6 rollouts, seed 2, 500 test questions of all kinds:\n"
        head = ["recipe", "rollouts", "live ones", "EM of the warm start", "gain in EM"]
        head += ["on kinds trained on", "on other kinds", "in mean@4", "seconds a step"]
        yield from table(head, rows)


def mean_at_k(run: Found) -> str:
    """The gain in the share of right ones among sampled answers."""
    return gain(run["arms"]["method"].get("samples", {}).get("all", {}).get("mean", {}).get("gain"))


def live(arm: Found) -> int:
    """Rollouts of steps whose group had unequal rewards."""
    return int(sum(step["rollouts/played"] * (1 - step["reward/zero_variance"]) for step in arm["curve"]))


def seconds(arm: Found) -> str:
    """Mean seconds of a step."""
    return f"{sum(step['time/step_s'] for step in arm['curve']) / len(arm['curve']):.0f}"


def settings(run: Found) -> Found:
    """A run's recipe; a setting that is newer than the record has its default."""
    try:
        return Recipe.from_dict(run["recipe"]).to_dict()
    except ConfigError:  # a setting that is no more
        return dict(run["recipe"])


def seeds_together(runs: dict[str, Found]) -> Iterator[str]:
    """Mean gain of runs that differ in the seed alone, one for each seed; a resampled question brings the values of all its seeds."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, run in runs.items():
        if "right" in run["arms"]["method"]:
            recipe = settings(run)
            recipe["scale"] |= {"seed": None}
            groups[json.dumps(recipe, sort_keys=True)].append(name)
    rows = []
    for names in groups.values():
        if 1 < len(names) == len({runs[name]["seed"] for name in names}):
            count = runs[names[0]]["arms"]["warm-start"]["all"]["n"]
            mean = gain(mean_gain([runs[name] for name in names]))
            each = ", ".join(gain(runs[name]["arms"]["method"]["all"]["em"]["gain"]) for name in names)
            rows.append([", ".join(names), str(count), mean, each])
    if rows:
        yield "Runs that differ in the seed alone, together:\n"
        yield from table(["runs", "questions", "mean gain", "gain of each"], rows)


def mean_gain(runs: list[Found], kinds: tuple[str, ...] = ("all",)) -> Found:
    """Mean gain of several runs on the same questions of some kinds, paired by question."""
    deltas: dict[str, float] = defaultdict(float)
    for arms in (run["arms"] for run in runs):
        for arm, sign in (("method", 1), ("warm-start", -1)):
            for question in arms[arm]["right"]:
                if "all" in kinds or question.split("-")[1] in kinds:
                    deltas[question] += sign / len(runs)
    # Questions that no run answered rightly have no entry.
    count = sum(runs[0]["arms"]["warm-start"][kind]["n"] for kind in kinds)
    return bootstrap_mean([*deltas.values(), *[0.0] * (count - len(deltas))]).to_dict()


def measured(arm: dict[str, Any]) -> int:
    """Rollouts of the candidates, before the first step."""
    return int(arm.get("selection", {}).get("episodes", 0))


def rollouts(arm: dict[str, Any]) -> int:
    """All rollouts of an arm."""
    return measured(arm) + int(sum(step.get("rollouts/played", 0) for step in arm["curve"]))


def demos(folder: Path, prefixes: tuple[str, ...] = ("",)) -> Iterator[str]:
    """Table rows: runs of `sleuth demo` and what GRPO gained."""
    rows = []
    for path in sorted(path for path in folder.glob("*.json") if path.name.startswith(prefixes)):
        run = json.loads(path.read_text())
        before, after = run["stages"]["after warm start"], run["stages"]["after GRPO"]
        notes = " ".join(run["notes"])
        formats = [interval(stage["valid_format"], "valid_format") for stage in (before, after)]
        rows.append(
            [
                path.stem,
                str(after["n"]),
                *re.findall(r"GRPO: ([0-9]+) steps?", notes),
                *(interval(stage["em"]) for stage in (before, after)),
                *re.findall(r"GRPO over warm start: (\S+) EM points (\[.+?\])", notes)[0],
                *formats,
            ]
        )
    head = ["run", "questions", "steps", "EM after the warm start", "after GRPO", "gain", "interval"]
    yield from table([*head, "valid format after the warm start", "after GRPO"], rows)


def first_runs(folder: Path) -> Iterator[str]:
    """Runs before and after training, one folder each."""
    rows = []
    for path in sorted(folder.glob("*/result.json")):
        run = json.loads(path.read_text())
        before, after = run["before"], run["after"]
        ems = [interval(before["em"]), interval(after["em"]), gain(run["difference"]["em"])]
        formats = [interval(side["valid_format"], "valid_format") for side in (before, after)]
        rows.append([f"`{run['recipe']}`", *ems, *formats])
    yield from table(["recipe", "EM before", "after", "gain", "valid format before", "after"], rows)


def guards(folder: Path) -> Iterator[str]:
    """Runs that collapse, with guards and without: one file of metrics each."""
    names = {"reward/total": "reward", "rollouts/valid_format": "valid", "rollouts/truncated": "cut"}
    runs = {
        path.stem: list(map(json.loads, path.read_text().splitlines()))
        for path in sorted(folder.glob("*.jsonl"))
    }
    rows = []
    for step in range(1, max(map(len, runs.values())) + 1):
        found = [run[step - 1] if step <= len(run) else {} for run in runs.values()]
        cells = [f"{row[name]:.2f}" if name in row else "–" for row in found for name in names]
        rows.append([str(step), *cells])
    yield from table(["step", *(f"{run}: {name}" for run in runs for name in names.values())], rows)


def robustness(folder: Path) -> Iterator[str]:
    """Runs of `sleuth robustness`: EM by level of perturbation."""
    runs = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    levels = sorted({point["level"] for run in runs for point in run["points"]})
    rows = []
    for run in runs:
        found = {point["level"]: interval(point["figures"]["em"]) for point in run["points"]}
        rows.append([run["axis"], *(found.get(level, "") for level in levels)])
    yield from table(["EM by level", *map(str, levels)], rows)


def studies(folder: Path) -> Iterator[str]:
    """Runs of `sleuth study`: own figures next to the published ones."""
    for path in sorted(folder.glob("*/*.json")):
        study = json.loads(path.read_text())
        settings = " ".join(f"--set {one}" for one in study["settings"])
        yield f"### {study['source'] or study['study']}: {study['title']}\n"
        yield f"`sleuth study {study['study']} --scale {study['scale']} {settings}`, seeds {study['seeds']}\n"
        levels = sorted({f["noise"] for row in study["rows"] for f in row["figures"]})
        yield from (
            noise_curve(study["rows"], levels) if len(levels) > 1 else next_to_published(study["rows"])
        )


def next_to_published(rows: list[dict[str, Any]]) -> Iterator[str]:
    """EM and F1 of each row next to the first published EM."""
    found = []
    for row in rows:
        ours = {f["measure"]: interval(f, f["measure"]) for f in row["figures"]}
        published = [p for p in row["published"] if p["measure"] == "em" and p["value"] is not None]
        other = f"{100 * published[0]['value']:.1f} on {published[0]['dataset']}" if published else "–"
        found.append([named(row), ours.get("em", "–"), ours.get("f1", "–"), other])
    yield from table(["row", "EM", "F1", "published EM"], found)


def noise_curve(rows: list[dict[str, Any]], levels: list[int]) -> Iterator[str]:
    """EM of each row by the number of irrelevant passages."""
    found = []
    for row in rows:
        ours = {f["noise"]: interval(f, "em") for f in row["figures"] if f["measure"] == "em"}
        found.append([named(row), *(ours.get(level, "–") for level in levels)])
    yield from table(["EM by irrelevant passages", *map(str, levels)], found)


def named(row: dict[str, Any]) -> str:
    """Label of a row, with what it lacks."""
    return f"{row['label']} ({row['missing']})" if row["missing"] else str(row["label"])


Section = tuple[str, str, Callable[[Path], Iterator[str]], str]
"""A folder of results/, a title, its tables and the file with its words."""
RESULTS: list[Section] = [
    ("learn", "What training gains over its warm start", learning, "note.md"),
    ("demo", "`make demo`: Eval-RAR on the World Factbook", partial(demos, prefixes=DEMOS), "note.md"),
    ("guards", "A run that collapses", guards, "note.md"),
    ("robustness", "How robust the demo's model is", robustness, "note.md"),
    ("studies", "Studies", studies, "note.md"),
]
RUNS: list[Section] = [
    ("learn", "All runs", all_learning, "details.md"),
    ("demo", "`make demo`", demos, "details.md"),
    ("hotpotqa-2wiki", "The demo on HotpotQA and 2WikiMultiHopQA", demos, "details.md"),
    ("first-runs", "First runs of the methods", first_runs, "details.md"),
    ("learn", "Runs one by one", learning_by_kind, ""),
]


def page(head: str, sections: list[Section]) -> str:
    """A whole page."""
    lines = [head]
    for name, title, tables, words in sections:
        folder = ROOT / "results" / name
        lines += [f"## {title}\n", *tables(folder)]
        lines += [(folder / words).read_text().strip() + "\n"] if words else []
    return "\n".join(lines).rstrip() + "\n"


def pages() -> dict[str, str]:
    """The pages by file name."""
    return {"results.md": page(HEAD, RESULTS), "runs.md": page(RUNS_HEAD, RUNS)}


if __name__ == "__main__":
    for file, text in pages().items():
        (ROOT / "docs" / file).write_text(text, encoding="utf-8")
