"""Parts of a benchmark, each in a process of its own with a time limit, and the record of where they ran."""

import json
import os
import platform
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def run_part(arguments: Sequence[str], limit_s: float, environment: Mapping[str, str]) -> dict[str, Any]:
    """Figures that `python ARGUMENTS` prints in its last line, or the last line of the error that ended it."""
    started = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            timeout=limit_s,
            env={**os.environ, **environment},
        )
    except subprocess.TimeoutExpired:
        return {"error": f"took longer than {limit_s:g} s"}
    seconds = round(time.monotonic() - started, 1)
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines() or [""]
    if done.returncode:
        return {"error": lines[-1][:300], "seconds": seconds}
    found: dict[str, Any] = json.loads(lines[-1])
    return found | {"seconds": seconds}


def sampler(name: str, model: str, policy: Any) -> Any:
    """An engine by its name in Scale, with the weights of `policy`, in the arithmetic of its training."""
    from sleuth.engines.transformers import TransformersEngine

    if name == "transformers":
        return TransformersEngine(policy.model, policy.tokenizer, model, autocast=policy.autocast_dtype)
    dtype = "bfloat16" if policy.autocast_dtype else "float32"
    if name == "llama.cpp":
        from llama_engine import LlamaCppEngine

        engine: Any = LlamaCppEngine(model, dtype=dtype)
    else:
        from sleuth.engines import open_engine

        engine = open_engine(f"{name}:{model}", dtype=dtype)
    engine.sync(policy)
    return engine


def machine() -> str:
    """Processor and cores."""
    return f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def commit() -> str:
    """The commit of the code, with a mark if files were changed since."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def write(figures: Mapping[str, Any], path: Path | None) -> None:
    """Figures as JSON on standard output, and in `path` if there is one."""
    text = json.dumps(figures, indent=1)
    print(text)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")


@dataclass
class Stopwatch:
    """CPU seconds by name."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    began: float = field(default_factory=time.process_time)

    def start(self, *_: Any, **__: Any) -> None:
        self.began = time.process_time()

    def stop(self, name: str) -> None:
        """Note the seconds since the last start."""
        self.seconds[name].append(time.process_time() - self.began)

    def time(self, name: str, work: Callable[[], T]) -> T:
        """The result of `work`, whose seconds are noted."""
        self.start()
        result = work()
        self.stop(name)
        return result

    def best(self) -> dict[str, float]:
        """The least seconds of each name: other load on the machine only adds to them."""
        return {name: round(min(values), 2) for name, values in self.seconds.items()}


def ratios(ours: dict[str, float], theirs: dict[str, float]) -> dict[str, float]:
    """How many times as long theirs takes, by name."""
    return {name: round(theirs[name] / value, 2) for name, value in ours.items()}
