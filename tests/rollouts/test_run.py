from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from sleuth.engines.base import Completion, Request, Sampling
from sleuth.engines.scripted import ByteTokenizer, ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.episodes.world import World
from sleuth.errors import ConfigError, RetrievalError
from sleuth.protocols.prompted.direct import PlainRAG
from sleuth.protocols.search_tags import SearchTags
from sleuth.retrievers.base import Retriever
from sleuth.rollouts.run import roll_out
from sleuth.types import Hit, Passage, Question, Trajectory

PROTOCOL = SearchTags(instruction="Q: {question}", note="evaluate", invalid_message="\nTry again.\n")
QUESTION = Question("q1", "Who?", ("Ann",))
BYTES = ByteTokenizer()


@dataclass(frozen=True)
class Shelf(Retriever):
    """Returns the same passages for everything, or fails for the query "boom"."""

    passages: tuple[Passage, ...] = (
        Passage("p1", "Ann", "Ann wrote it."),
        Passage("p2", "Bob", "Bob read it."),
    )

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        if "boom" in queries:
            raise RetrievalError("index gone")
        return [[Hit(p, 1.0 / (i + 1)) for i, p in enumerate(self.passages[:k])] for _ in queries]


def play(
    reply: object,
    question: Question = QUESTION,
    protocol: object = PROTOCOL,
    retriever: Retriever = Shelf(),
    **limits: int,
) -> Trajectory:
    world = World(protocol, ScriptedEngine(reply), retriever, Limits(**limits))  # type: ignore[arg-type]
    ((trajectory,),) = roll_out([question], world)
    return trajectory


SEARCH, ANSWER = "<think>t</think><search>ann</search>", "<evaluate>Doc 1</evaluate><answer>Ann</answer>"


class Refusing(ScriptedEngine):
    """Will not write a turn for a question that holds "forbidden", once it has searched."""

    async def sample(self, request: Request, sampling: Sampling) -> Completion:
        if "forbidden" in self.tokenizer.decode(request.tokens) and len(request.messages) > 1:
            return Completion((), (), "", (), "", "content filter")
        return await super().sample(request, sampling)


def test_a_turn_that_nobody_would_write_fails_its_episode_alone():
    questions = [Question("q1", "Who?", ("Ann",)), Question("q2", "Who is forbidden?", ("Ann",))]
    (fine,), (failed,) = roll_out(questions, World(PROTOCOL, Refusing([SEARCH, ANSWER]), Shelf(), Limits()))
    assert (fine.answer, fine.fault, fine.ending) == ("Ann", "", "answered")
    assert (failed.answer, failed.fault, failed.ending) == (None, "content filter", "fault")
    assert [s.author for s in failed.segments] == ["prompt", "policy", "world"]


def test_search_then_answer():
    t = play([SEARCH, ANSWER])
    assert [s.author for s in t.segments] == ["prompt", "policy", "world", "policy"]
    assert (t.answer, t.ending, t.malformed, t.searches) == ("Ann", "answered", "", 1)
    assert [h.passage.id for h in t.hits] == ["p1", "p2"]
    assert [h.passage.id for h in play([SEARCH, ANSWER], top_k=1).hits] == ["p1"]
    assert t.bodies("evaluate") == ["Doc 1"]
    assert t.segments[2].text.strip().startswith("<information>Doc 1(Title: Ann) Ann wrote it.")


def test_tokens_are_kept_as_fed_and_as_sampled_and_chat_turns_alternate():
    asked: list[Request] = []

    def reply(request: Request, turn: int) -> str:
        asked.append(request)
        return [SEARCH, ANSWER][turn]

    t = play(reply)
    assert all(t.tokens[: len(request.tokens)] == request.tokens for request in asked)
    assert [[m.role for m in request.messages] for request in asked] == [
        ["user"],
        ["user", "assistant", "user"],
    ]
    assert "".join(BYTES.decode(s.tokens) for s in t.segments[1:]) == "".join(s.text for s in t.segments[1:])
    assert sum(t.loss_mask) == len((SEARCH + ANSWER).encode())


def test_field_spans_map_to_tokens():
    t = play([SEARCH, ANSWER])
    (field,) = [f for f in t.fields if f.tag == "evaluate"]
    segment = t.segments[field.segment]
    inside = [
        token
        for token, end in zip(segment.tokens, segment.ends, strict=True)
        if field.start < end <= field.end
    ]
    assert BYTES.decode(inside) == "Doc 1"


@pytest.mark.parametrize("turn", ["hello", ""])
def test_an_invalid_action_is_answered_and_costs_a_step(turn: str):
    t = play([turn, "<answer>Ann</answer> and much more <search>x</search>"])
    assert [a.kind for a in t.actions] == ["invalid", "answer"]
    assert (t.segments[2].author, t.segments[2].text) == ("world", "\nTry again.\n")
    assert t.malformed
    assert (t.segments[3].text, t.segments[3].stop) == ("<answer>Ann</answer>", "stop")
    ended = play([turn], protocol=SearchTags(instruction="{question}"))
    assert (ended.ending, ended.answer) == ("steps", None), "without a message to answer with"


def test_plain_rag_retrieves_before_the_prompt_and_drops_passages_to_fit_the_context():
    t = play(["Ann\n"], protocol=PlainRAG())
    assert [s.author for s in t.segments] == ["prompt", "policy"]
    assert "Doc 1(Title: Ann) Ann wrote it." in t.segments[0].text
    assert ([h.passage.id for h in t.hits], t.answer) == (["p1", "p2"], "Ann")
    long = Shelf(tuple(Passage(f"p{i}", "T", "word " * 60) for i in range(3)))
    t = play(["Ann"], protocol=PlainRAG(), retriever=long, max_context=600, max_new_tokens=20)
    assert [h.passage.id for h in t.hits] == ["p0"]


def test_step_limit():
    t = play(lambda request, turn: SEARCH, protocol=SearchTags(instruction="{question}"), max_steps=3)
    assert t.ending == "steps"
    assert t.searches == 2  # the third could not run: no turn would have been left to read it
    assert t.actions[-1].kind == "invalid"
    assert t.segments[-1].author == "policy"
    assert t.malformed == "no answer"


def test_passages_are_dropped_whole_and_the_last_one_cut_but_the_closing_tag_stays():
    long = Shelf(tuple(Passage(f"p{i}", "T", " ".join(["word"] * 40)) for i in range(3)))
    two = play([SEARCH, ANSWER], retriever=long, max_passage_tokens=500)
    assert [h.passage.id for h in two.hits] == ["p0", "p1"]
    assert two.segments[2].text.endswith("</information>\n\n")
    assert len(two.segments[2].tokens) <= 500
    cut = play([SEARCH, ANSWER], retriever=long, max_passage_tokens=100)
    assert [h.passage.id for h in cut.hits] == ["p0"]
    assert cut.segments[2].text.endswith("word</information>\n\n")
    assert len(cut.segments[2].tokens) <= 100


def test_context_budget_never_cuts_the_question():
    t = play(lambda request, turn: SEARCH, max_context=300, max_new_tokens=50, max_passage_tokens=200)
    assert t.ending in ("context", "steps")
    assert len(t.tokens) <= 300
    assert t.segments[0].text == "Q: Who?"
    long = Question("q", "w " * 400, ("Ann",))
    t = play([ANSWER], question=long, max_context=200, max_new_tokens=50)
    assert (t.ending, t.answer, t.actions) == ("context", None, ())


def test_a_failing_retriever_is_a_fault_not_a_wrong_answer():
    t = play(["<search>boom</search>"])
    assert (t.ending, t.fault) == ("fault", "retrieval failed: index gone")


def test_a_fault_leaves_its_neighbours_alone_when_they_search_elsewhere():
    questions = [QUESTION, Question("q2", "Else?", ("x",))]

    def reply(request: Request, turn: int) -> str:
        second = "Else" in request.messages[0].content
        return "<search>boom</search>" if second and turn == 0 else [SEARCH, ANSWER][turn]

    class PerQuestion(Shelf):
        def for_question(self, question: Question) -> Retriever:
            return Shelf(self.passages)

    groups = roll_out(questions, World(PROTOCOL, ScriptedEngine(reply), PerQuestion(), Limits()))
    assert [t.ending for (t,) in groups] == ["answered", "fault"]


def test_groups_and_order_with_a_narrow_width():
    questions = [Question(f"q{i}", f"Number {i}?", ()) for i in range(5)]

    def reply(request: Request, turn: int) -> str:
        number = int(request.messages[0].content.split("Number ")[1][0])
        return SEARCH if turn < number else f"<answer>{number}</answer>"

    seen: list[Trajectory] = []
    world = World(PROTOCOL, ScriptedEngine(reply), Shelf(), Limits(max_steps=6))
    groups = roll_out(questions, world, samples=3, width=2, on_done=seen.append)
    assert [[(t.answer, t.sample) for t in group] for group in groups] == [
        [(str(i), s) for s in range(3)] for i in range(5)
    ]
    assert len(seen) == 15
    assert len({t.seed for group in groups for t in group}) == 15


def test_seeds_depend_on_question_and_sample_not_on_company():
    def seeds(questions: list[Question], width: int) -> dict[tuple[str, int], list[int]]:
        asked: dict[tuple[str, int], list[int]] = {}

        def reply(request: Request, turn: int) -> str:
            key = (request.messages[0].content, turn)
            asked.setdefault(key, []).append(request.seed)
            return [SEARCH, ANSWER][turn]

        roll_out(questions, World(PROTOCOL, ScriptedEngine(reply), Shelf(), Limits()), samples=2, width=width)
        return {key: sorted(values) for key, values in asked.items()}

    other = Question("q2", "Else?", ())
    together, alone = seeds([other, QUESTION], 1), seeds([QUESTION], 4)
    assert alone.items() <= together.items()
    assert len({seed for values in together.values() for seed in values}) == 8


def test_sampling_reaches_the_engine_with_the_protocols_stops():
    given: list[Sampling] = []

    class Recording(ScriptedEngine):
        async def sample(self, request: Request, sampling: Sampling) -> Completion:
            given.append(sampling)
            return await super().sample(request, sampling)

    world = World(PROTOCOL, Recording(["<answer>x</answer>"]), Shelf(), Limits(max_new_tokens=33))
    roll_out([QUESTION], world.sampled(0.7, 0.9))
    assert given == [Sampling(33, 0.7, 0.9, ("</search>", "</answer>"))]


def test_samples_and_width_must_be_positive():
    world = World(PROTOCOL, ScriptedEngine([]), Shelf(), Limits())
    assert roll_out([], world) == []
    for wrong in ({"samples": 0}, {"width": 0}):
        with pytest.raises(ConfigError):
            roll_out([QUESTION], world, **wrong)
