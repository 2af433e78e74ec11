"""Backtracks: segments leave the context and stay in the record."""

from dataclasses import replace

from sleuth.engines.base import Message
from sleuth.engines.scripted import ByteTokenizer, ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.episodes.record import NOTHING_TO_DROP, undo_drops
from sleuth.recipes.evo_rag.protocol import BACKTRACK, EvoRAG
from sleuth.retrievers.given import GivenParagraphs
from sleuth.types import Passage, Question, Trajectory
from support.episodes import run_episodes

BYTES = ByteTokenizer()
PASSAGES = (Passage("d", "Dogs", "About dogs."), Passage("c", "Cats", "About cats."))
QUESTION = Question("q", "Who?", ("x",), PASSAGES, ("d",))
PROTOCOL = EvoRAG("{question}", invalid_message="\nagain\n", backtrack_message="\ndropped\n")
DOGS, CATS = "<think>a</think><search>dogs</search>", "<think>b</think><search>cats</search>"
BACK, ANSWER = f"<think>c</think>{BACKTRACK}", "<think>d</think><answer>x</answer>"


class Recording(ScriptedEngine):
    """Keeps the contexts it was given."""

    async def sample(self, request, sampling):  # type: ignore[no-untyped-def]
        # A copy: an episode's own list grows.
        self.contexts = [*getattr(self, "contexts", []), replace(request, tokens=list(request.tokens))]
        return await super().sample(request, sampling)


def play(*turns: str, max_steps: int = 10) -> tuple[Trajectory, Recording]:
    written = iter(turns)
    engine = Recording(lambda request, turn: next(written))
    ((trajectory,),) = run_episodes(
        [QUESTION],
        protocol=PROTOCOL,
        engine=engine,
        retriever=GivenParagraphs(),
        limits=Limits(max_steps=max_steps, top_k=1, max_context=4000, max_new_tokens=200),
    )
    return trajectory, engine


def test_the_last_search_and_its_documents_leave_the_context():
    t, engine = play(DOGS, CATS, BACK, ANSWER)
    assert [a.kind for a in t.actions] == ["search", "search", "backtrack", "answer"]
    assert [s.until for s in t.segments] == [-1, -1, -1, 6, 6, -1, -1, -1]
    last = engine.contexts[-1]
    seen = BYTES.decode(list(last.tokens))
    assert "dogs" in seen
    assert "cats" not in seen
    assert seen.endswith(f"{BACK}\ndropped\n")
    assert last.messages[-2:] == (Message("assistant", BACK), Message("user", "\ndropped\n"))
    assert not any("cats" in message.content for message in last.messages)


def test_every_context_follows_from_the_record():
    t, engine = play(DOGS, BACK, CATS, BACK, BACK, DOGS, ANSWER)
    contexts = [t.context(i) for i, _ in t.policy_segments()]
    assert contexts == [list(request.tokens) for request in engine.contexts]
    assert t.has_drops
    assert len(t.tokens) > len(contexts[-1]) + len(t.segments[-1].tokens)


def test_a_second_backtrack_takes_the_search_before():
    t, engine = play(DOGS, CATS, BACK, BACK, ANSWER)
    assert [a.kind for a in t.actions] == ["search", "search", "backtrack", "backtrack", "answer"]
    assert "<search>" not in BYTES.decode(list(engine.contexts[-1].tokens))


def test_nothing_to_drop_is_invalid_and_answered_as_such():
    t, engine = play(BACK, DOGS, BACK, BACK, ANSWER)
    assert [(a.kind, a.text) for a in t.actions] == [
        ("invalid", NOTHING_TO_DROP),
        ("search", "dogs"),
        ("backtrack", ""),
        ("invalid", NOTHING_TO_DROP),
        ("answer", "x"),
    ]
    assert BYTES.decode(list(engine.contexts[-1].tokens)).endswith(f"{BACK}\nagain\n")
    assert t.malformed == NOTHING_TO_DROP


def test_turns_after_the_dropped_search_stay():
    t, engine = play(DOGS, "hello", BACK, ANSWER)
    assert "hello\nagain\n" in BYTES.decode(list(engine.contexts[-1].tokens))
    assert [s.until for s in t.segments[:4]] == [-1, 6, 6, -1]


def test_a_backtrack_makes_room():
    # Without it, four results of this size would not fit the context.
    t, _ = play(*[DOGS, BACK] * 4, ANSWER)
    assert t.ending == "answered"
    assert max(len(t.context(i)) for i, _ in t.policy_segments()) < len(t.tokens)


def test_backtracking_in_the_last_turn_ends_the_episode():
    t, _ = play(DOGS, BACK, max_steps=2)
    assert (t.ending, t.actions[-1].kind) == ("steps", "backtrack")


def test_the_beginning_of_an_episode_as_it_was():
    t, _ = play(DOGS, CATS, BACK, BACK, ANSWER)
    assert [s.until for s in t.segments] == [-1, 8, 8, 6, 6, -1, -1, -1, -1, -1]
    assert [s.until for s in undo_drops(t.segments[:5])] == [-1] * 5
    assert [s.until for s in undo_drops(t.segments[:7])] == [-1, -1, -1, 6, 6, -1, -1]
