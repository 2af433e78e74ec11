"""World of the documented commands: a folder with every file that they name, a tiny model, servers at their addresses."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sleuth.cli import main
from sleuth.engines.base import Request
from sleuth.engines.scripted import ScriptedEngine
from sleuth.service.store import Feedback, Store
from support.pages import ROOT
from support.runs import GOLD, episode
from support.towns import CITIES, questions, write_towns

SECONDS = 180
"""Longest time that a command may take as a process."""
_ENDPOINT = re.compile(r"openai:https?://[^#]+#[\w./:-]+")
_RETRIEVER = re.compile(r"http://(?:host|search|HOST):(?:8000|PORT)")
_OPENING = ("ask", "chat", "serve", "synth", "eval", "demonstrate")
"""Verbs that open a model, which the command may name."""
_SERVERS = ("serve", "serve-retriever", "show")
_TRAINED = (
    "scale.steps=1",
    "scale.warm_start_examples=0",
    "scale.candidates=0",
    "scale.dev_questions=0",
    "scale.batch=4",
)
LIMIT = "scale.max_steps=2"
"""Fewer turns; EVO-RAG's curriculum counts to its own limit."""
_SHORT = (
    "scale.max_new_tokens=8",
    "scale.max_context=1000",
    "scale.max_passage_tokens=64",
    LIMIT,
)
_TEXT = "The town lies on a river, and many travellers write home about its old bridge, its market and its quiet inns."

SEGMENTS = {
    "question": "Who is the mayor of Arlen?",
    "answers": ["Arlenson"],
    "passages": [{"id": "p0", "title": "Arlen", "text": "The mayor of Arlen is Mr Arlenson."}],
    "gold_ids": ["p0"],
    "entailment": 0.9,
    "segments": [{"by": "model", "text": "<evaluate>Mr Arlenson.</evaluate><answer>Arlenson</answer>"}],
}
PREDICTION = {"prediction": "Arlenson", "answers": ["Arlenson"], "dataset": "hotpotqa"}
HOTPOT = {
    "_id": "h1",
    "question": "Who is the mayor of the town by the old bridge?",
    "answer": "Arlenson",
    "type": "bridge",
    "context": [
        ["Bridge", ["The old bridge is in Arlen."]],
        ["Arlen", ["Its mayor is Mr Arlenson."]],
        ["Brill", [_TEXT]],
    ],
    "supporting_facts": [["Bridge", 0], ["Arlen", 0]],
}

RUNS = ("runs/mine", "runs/docs", "theirs")
"""Folders with models of their own."""


@dataclass(frozen=True)
class World:
    """One folder, the model that stands in for all others, and the addresses of the servers that run."""

    folder: Path
    model: str
    endpoint: str
    retriever: str

    def adapted(self, words: Sequence[str]) -> list[str]:
        """A command with its models, addresses and sizes replaced by those at hand."""
        words = _with_examples([self._here(each) for word in words for each in _expanded(word)])
        settings = _sizes(words)
        if words[0] == "train":
            settings.append(f"scale.model={self.model}")
        elif words[0] in _OPENING and not {"--model", "--run", *RUNS} & set(words):
            words += ["--model", self.model]
        return words + [each for setting in settings for each in ("--set", setting)]

    def _here(self, word: str) -> str:
        """A word with what stands for the reader's own model, run, server or number of questions."""
        word = _RETRIEVER.sub(self.retriever, _ENDPOINT.sub(self.endpoint, word))
        for name, value in (("MODEL", self.model), ("RUN", "runs/mine"), ("/shared/", "shared/")):
            word = word.replace(name, value) if word.startswith(name) else word
        return re.sub(r"^\d+ of ", "2 of ", word)

    def run(self, words: Sequence[str]) -> None:
        """Run a command to its end, a server until it answers; assert its exit code."""
        if words[0] == "torchrun":
            command = [sys.executable, "-m", "torch.distributed.run", *words[1 : words.index("sleuth") + 1]]
            self._process([*command, *self.adapted(words[words.index("sleuth") + 1 :])])
        elif words[0] == "python":
            self._process([sys.executable, *words[1:]])
        elif words[1] in _SERVERS and "--html" not in words:
            self._serve(self.adapted(words[1:]))
        else:
            errors = io.StringIO()
            writer = patch("sleuth.engines.open_engine", lambda _: ScriptedEngine(_writer))
            if words[1] == "train" and "-o" in words:  # a run there is another one
                shutil.rmtree(words[words.index("-o") + 1], ignore_errors=True)
            taught = (
                writer if words[1] in ("synth", "demonstrate") else nullcontext()
            )  # too hard for a tiny model
            with taught, redirect_stdout(io.StringIO()), redirect_stderr(errors):
                code = main(self.adapted(words[1:]))
            assert code == 0, errors.getvalue()[-2000:]

    def _process(self, command: Sequence[str]) -> None:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr[-6000:]}"

    def _serve(self, words: list[str]) -> None:
        if "--mcp" in words:  # over standard input, which ends here
            self._process([sys.executable, "-m", "sleuth", *words])
            return
        with started(self.folder, *words):
            pass


def _expanded(word: str) -> list[str]:
    """The files that a pattern matches; a word without one as it is."""
    return [str(path) for path in Path().glob(word)] if "/*" in word else [word]


def _with_examples(words: list[str]) -> list[str]:
    """The command with options in place of "…", questions that are not on a hub, and few of them."""
    verb = words[0]
    if verb == "eval" and "--data" not in words:
        words += ["--data", "jsonl:dev.jsonl"]
    if verb == "eval" and "…" in words and "--index" not in words:
        words += ["--index", "idx"]
    if words[1:2] == ["eviomni/extract"]:
        words += ["-o", "FOLDER"]
    if "--count" in words:
        words[words.index("--count") + 1] = "10"
    return words if verb == "search" else [word for word in words if word != "…"]  # there it is the query


def _sizes(words: Sequence[str]) -> list[str]:
    """Settings that make a command small enough for a tiny model."""
    verb, settings = words[0], []
    if verb in ("train", "eval", "ask", "chat") or (verb == "serve" and "--recipe" not in words):
        settings += [each for each in _SHORT if each != LIMIT or "evo-rag/cpu" not in words]
    if verb in ("train", "eval"):
        settings += [*_TRAINED, "scale.eval_questions=2"]
    if words[1:] and words[1].startswith("eviomni/") and "--index" in words:
        settings.append("retriever=bm25")  # for DPR's encoder, which would be downloaded
    large = any(word.endswith(("/paper", "/vanilla-evidence", "/reader")) for word in words)
    if large and verb in ("train", "export"):
        settings += [
            "scale.batch=16",
            "scale.train_data=jsonl:train.jsonl",
            "scale.eval_data=jsonl:dev.jsonl",
        ]
    return settings


@contextmanager
def started(folder: Path, *words: str, seconds: float = SECONDS) -> Iterator[str]:
    """The address of a `sleuth` server, a process of its own, while it runs; it must end well on a signal.

    It is killed after `seconds`, so that no test waits for ever.
    """
    words = tuple(word for i, word in enumerate(words) if "--port" not in words[max(0, i - 1) : i + 1])
    command = [sys.executable, "-m", "sleuth", *words, "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=_environment()
    ) as process:
        watch = threading.Timer(seconds, process.kill)
        watch.start()
        try:
            assert process.stdout
            line = process.stdout.readline()
            assert " at http" in line, process.communicate()[1][-2000:]
            yield line.split(" at ", 1)[1].split()[0].removesuffix("/retrieve")
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) in (0, -signal.SIGTERM)
        finally:
            watch.cancel()
            process.kill()


def _environment(*words: str) -> dict[str, str]:
    """Variables of a process; a server for other machines wants a token."""
    token = {"SLEUTH_TOKEN": "secret", "SLEUTH_RETRIEVER_TOKEN": "secret"} if "--host" in words else {}
    return os.environ | {"OMP_NUM_THREADS": "1"} | token


def _writer(request: Request, turn: int) -> str:
    """A model that asks for the mayor of a passage's town, and reads the answer."""
    prompt = request.messages[0].content
    found = re.search(r"The mayor of (\w+)", prompt)
    town = found[1] if found else ""
    if "Write one question that the passage answers" in prompt:
        return f"Question: Who governs the town of {town}?\nAnswer: {town}son"
    if "<extract>" in prompt:
        return (
            f"<reason>It is there.</reason><extract>{found and found[0]}</extract><answer>{town}son</answer>"
        )
    return f"{town}son" if town else "not stated"


def write_folder(folder: Path, model: Path) -> None:
    """Everything that the pages name and do not make themselves; the present folder must be `folder`."""
    rows = [_lines(question) for question in questions()]
    files = {"train": [row | {"id": f"{row['id']}-{i}"} for row in rows for i in range(3)], "dev": rows}
    write_towns(
        folder,
        **files,
        rows=[SEGMENTS],
        transcripts=[SEGMENTS],
        predictions=[PREDICTION],
        more=[_passage(name) for name in ("p17", "p18")],
    )
    for name in ("my-folder", "docs", "notes", "reports"):
        (folder / name).mkdir()
        for city in (city + end for city in CITIES for end in ("", "ham", "by")):
            (folder / name / f"{city}.md").write_text(
                f"# {city}\n\nThe mayor of {city} is Mr {city}son. {_TEXT}\n"
            )
    shutil.copy(folder / "corpus.jsonl", folder / "reports" / "towns.jsonl")
    with gzip.open(folder / "psgs_w100.tsv.gz", "wt") as file:
        file.write(
            "id\ttext\ttitle\n" + "".join(f"{i}\t{_TEXT}\t{city}\n" for i, city in enumerate(CITIES, 1))
        )
    for name in ("idx", "my-index", "wiki", "INDEX", "indexes/mine", "indexes/wiki"):
        shutil.copytree(folder / "index", folder / name)
    for name in ("train", "dev", "hotpot_dev_distractor_v1"):
        (folder / f"{name}.json").write_text(json.dumps([HOTPOT]))
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "examples" / "own_recipe.py", folder / "my_recipe.py")
    world = World(folder, str(model), "", "")
    data = ["--set", "scale.train_data=jsonl:train.jsonl", "--set", "scale.eval_data=jsonl:dev.jsonl"]
    world.run(["sleuth", "index", "corpus.jsonl", "-o", "wikipedia", "--dense", "minilm"])
    world.run(["sleuth", "train", "rag/cpu", *data, "--index", "idx", "-o", "runs/mine"])
    world.run(["sleuth", "export", "hub", "runs/mine", "-o", "theirs"])
    hotpotqa = ["--data", "hotpotqa:hotpot_dev_distractor_v1.json", "--index", "indexes/wiki"]
    world.run(["sleuth", "eval", "rag/cpu", *hotpotqa, "-o", "runs/base-eval"])
    for name in ("other", "demo"):
        shutil.copytree(folder / "runs" / "mine", folder / "runs" / name)
    store = Store(folder / "served")
    store.add("a", "rag", episode(GOLD, "Ann Bell", 1.0))
    store.judge(Feedback("a", "down", "Tom Reed"))
    store.close()


def _lines(question: dict[str, Any]) -> dict[str, Any]:
    """A question with its passage, for readers that bring their own."""
    passages = [_passage(name) for name in question["gold_ids"]]
    return question | {"passages": passages, "answer": question["answers"]}


def _passage(name: str) -> dict[str, str]:
    return {"id": name, "title": f"Town {name}", "text": _TEXT}
