from pathlib import Path

import pytest

from sleuth.errors import RetrievalError
from sleuth.protocols.eviomni import EviOmni
from sleuth.retrievers.evidence import Evidence
from sleuth.rollouts.store import TrajectoryWriter
from sleuth.rollouts.transcript import read_transcript
from sleuth.types import Question

PROTOCOL = EviOmni(instruction="{question}", sections=("reason", "extract"))


def test_each_question_gets_its_own_last_evidence(tmp_path: Path):
    path = tmp_path / "trajectories.jsonl"
    good, empty = Question("a", "?", dataset="nq", answers=()), Question("b", "?", answers=())
    with TrajectoryWriter(path) as writer:
        text = "<extract>old</extract><extract> new </extract>"
        writer.append(read_transcript(PROTOCOL, good, [("model", text)]))
        writer.append(read_transcript(PROTOCOL, empty, [("model", "nothing")]))
    evidence = Evidence(str(path))
    ((hit,),) = evidence.for_question(good).search(["x"], 5)
    assert (hit.passage.title, hit.passage.text) == ("", "new")
    assert evidence.for_question(empty).search(["x"], 5) == [[]]
    with pytest.raises(RetrievalError, match="'c'"):
        evidence.for_question(Question("c", "?", ()))


def test_bad_input(tmp_path: Path):
    question = Question("a", "?", ())
    with pytest.raises(RetrievalError, match="set retriever"):
        Evidence().for_question(question)
    with pytest.raises(RetrievalError):
        Evidence("x").search(["x"], 1)
    path = tmp_path / "bad.jsonl"
    path.write_text("{}\n")
    with pytest.raises(RetrievalError, match="not an episode"):
        Evidence(str(path)).for_question(question)


def test_identity_depends_on_the_content_at_the_path(tmp_path: Path):
    path = tmp_path / "trajectories.jsonl"
    digests = set()
    for content in ("{}\n", "{ }\n"):
        path.write_text(content)
        identity = Evidence(str(path)).identity()
        digests.add(identity["sha256"])
        assert (identity["retriever"], identity["path"]) == ("evidence", str(path))
    assert len(digests) == 2
    assert Evidence().identity()["sha256"] == ""
