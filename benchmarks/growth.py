"""How one BM25 index grows: building, memory, disk, opening and searching from 10,000 passages up, and beyond.

Every size is made, built and searched in processes of its own, over the synthetic passages and the two kinds
of questions of bm25.py. A curve is fitted to each figure by least squares of relative errors:

linear    a + b·n, neither negative: what every passage adds to a fixed cost (time, disk, latency)
inverse   1 / (a + b·n): queries per second
power     a·n^b: memory, most of which is bounded

A power law of latency, tried first, missed five million by three quarters: below 100,000 passages a query costs
the same whatever it reads.

The error that counts is that of a fit to all sizes but the largest, at the largest. The estimate for the
21,015,324 passages of Wikipedia comes from a fit to all sizes, and is an estimate.

    python benchmarks/growth.py --largest 5000000 --json results/benchmarks/growth.json
"""

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from bm25 import in_child

SIZES = (10_000, 100_000, 1_000_000, 5_000_000)
WIKIPEDIA = 21_015_324
"""Passages of the dump that DPR and Search-R1 search."""
CURVES = {
    "build_s": "linear",
    "build_peak_rss_gb": "power",
    "disk_mb": "linear",
    "open_s": "linear",
    "names_p50_ms": "linear",
    "words_p50_ms": "linear",
    "names_batch_queries_per_s": "inverse",
    "words_batch_queries_per_s": "inverse",
}
"""Figure of bm25.py → form of its curve."""
DISK_PER_PASSAGE = 2600
"""Approximate bytes for the passages, the index and the work files of a build."""


def fit(form: str, sizes: list[int], values: list[float]) -> tuple[float, float]:
    """(a, b) of a curve through at least two points."""
    n, y = np.array(sizes, dtype=float), np.array(values, dtype=float)
    if form == "power":
        b, log_a = np.polyfit(np.log(n), np.log(y), 1)
        return float(np.exp(log_a)), float(b)
    if form == "inverse":
        y = 1 / y
    (a, b), *_ = np.linalg.lstsq(np.column_stack([1 / y, n / y]), np.ones(len(y)), rcond=None)
    if a < 0:
        a, b = 0.0, (n / y).sum() / ((n / y) ** 2).sum()
    elif b < 0:
        a, b = (1 / y).sum() / ((1 / y) ** 2).sum(), 0.0
    return float(a), float(b)


def value(form: str, curve: tuple[float, float], number: int) -> float:
    """A curve at so many passages."""
    a, b = curve
    if form == "power":
        return a * number**b
    return 1 / (a + b * number) if form == "inverse" else a + b * number


def extrapolate(sizes: list[int], figures: list[dict[str, float]]) -> dict[str, dict[str, Any]]:
    """For each figure its curve, its estimate for Wikipedia, and the error of such a curve at the largest size."""
    estimates = {}
    for name, form in CURVES.items():
        values = [one[name] for one in figures]
        curve = fit(form, sizes, values)
        estimate: dict[str, Any] = {"form": form, "a": curve[0], "b": curve[1]}
        estimate["at_wikipedia"] = value(form, curve, WIKIPEDIA)
        if len(sizes) > 2:
            expected = value(form, fit(form, sizes[:-1], values[:-1]), sizes[-1])
            estimate |= {"expected_at_largest": expected, "error_at_largest": expected / values[-1] - 1}
        estimates[name] = estimate
    return estimates


def measure(number: int, num_queries: int, seed: int, place: Path | None) -> dict[str, float]:
    """All figures of one size; its files are removed."""
    with tempfile.TemporaryDirectory(dir=place) as folder:
        free = shutil.disk_usage(folder).free
        if free < number * DISK_PER_PASSAGE:
            raise SystemExit(
                f"{number:,} passages need about {number * DISK_PER_PASSAGE / 1e9:.1f} GB in {folder}, "
                f"{free / 1e9:.1f} GB are free; choose another --folder or --largest"
            )
        print(f"{number:,} passages …", file=sys.stderr, flush=True)
        in_child("--data", folder, str(number), str(num_queries), str(seed))
        return in_child("--build", "sleuth", folder) | in_child("--search", "sleuth", folder)


def show(sizes: list[int], figures: list[dict[str, float]], estimates: dict[str, dict[str, Any]]) -> None:
    """The figures as a table, with the estimate and the error of the fit at the largest size."""
    heads = [f"{size:,}" for size in sizes]
    print(f"{'passages':28}" + "".join(f"{head:>12}" for head in [*heads, "Wikipedia", "fit's error"]))
    for name, estimate in estimates.items():
        cells = [f"{one[name]:12.4g}" for one in figures] + [f"{estimate['at_wikipedia']:12.4g}"]
        error = f"{estimate['error_at_largest']:+12.0%}" if "error_at_largest" in estimate else f"{'–':>12}"
        print(f"{name:28}" + "".join(cells) + error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="passages of the largest index")
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where data and indexes go (default: a temporary folder)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    options = parser.parse_args()
    sizes = [size for size in SIZES if size < options.largest] + [options.largest]
    if len(sizes) < 2:
        parser.error(f"--largest must be more than {SIZES[0]:,}, or there is no growth to see")
    figures = [measure(size, options.queries, options.seed, options.folder) for size in sizes]
    estimates = extrapolate(sizes, figures)
    show(sizes, figures, estimates)
    result = {
        "sizes": {str(size): one for size, one in zip(sizes, figures, strict=True)},
        "queries": options.queries,
        "seed": options.seed,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": {"tantivy": version("tantivy")},
        "wikipedia": WIKIPEDIA,
        "estimates": estimates,
    }
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
