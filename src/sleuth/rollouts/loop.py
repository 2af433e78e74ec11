"""The episode loop: questions in, groups of trajectories out. The same code trains, evaluates and serves.

Episodes advance side by side, each at its own pace: whichever turns are ready are read together, one
batched search answers them, and their episodes go on while others are still being written. A
finished episode makes room for the next in the queue, so the engine's batch stays full.
What an episode contains depends only on its seed, never on its neighbours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from sleuth.engines.base import Completion, Engine, Request, Sampling, Tokenizer
from sleuth.errors import ConfigError, RetrievalError
from sleuth.protocols.base import AgentProtocol
from sleuth.retrievers.base import Retriever, check_k
from sleuth.rollouts.episode import Episode
from sleuth.rollouts.limits import Limits
from sleuth.types import Hit, Question, Trajectory

Hear = Callable[[Sequence[tuple[Episode, Completion]]], Sequence[Episode]]
"""Turns that are ready → the episodes that want another turn."""
Writer = Callable[[Sequence[Episode], Hear], None]
"""Whoever writes the policy's turns, a model or a script, until no episode wants another."""

GREEDY = Sampling(temperature=0.0)


def run_episodes(
    questions: Sequence[Question],
    *,
    protocol: AgentProtocol,
    engine: Engine,
    retriever: Retriever,
    limits: Limits,
    sampling: Sampling = GREEDY,
    samples: int = 1,
    seed: int = 0,
    width: int = 64,
    on_done: Callable[[Trajectory], None] | None = None,
) -> list[list[Trajectory]]:
    """Roll out `samples` episodes per question, at most `width` side by side.

    Returns one group per question, samples in order. A retriever that fails makes its episodes
    faults (Trajectory.fault); EngineError is raised, since nothing can go on without a model.
    `sampling` gives temperature and top-p; stop strings and lengths come from protocol and limits.
    """
    limits = limits.within(engine.context_length)
    return play(
        (
            Episode.start(q, sample, seed, retriever, protocol, limits)
            for q in questions
            for sample in range(samples)
        ),
        model_writer(engine, protocol, limits, sampling),
        engine.tokenizer,
        group_size=samples,
        width=width,
        on_done=on_done,
    )


def model_writer(engine: Engine, protocol: AgentProtocol, limits: Limits, sampling: Sampling) -> Writer:
    """The model as a writer: turns end at the protocol's stop strings and the limits' length."""
    turn = replace(sampling, stop=protocol.stops, max_new_tokens=limits.max_new_tokens)

    def write(episodes: Sequence[Episode], hear: Hear) -> None:
        waiting: dict[int, Episode] = {}

        def requests(some: Sequence[Episode]) -> list[tuple[int, Request]]:
            waiting.update((id(episode), episode) for episode in some)
            return [(id(episode), episode.request()) for episode in some]

        def reply(ready: Sequence[tuple[int, Completion]]) -> list[tuple[int, Request]]:
            return requests(hear([(waiting.pop(key), completion) for key, completion in ready]))

        engine.converse(requests(episodes), turn, reply)

    return write


def play(
    episodes: Iterable[Episode],
    write: Writer,
    tokenizer: Tokenizer,
    *,
    group_size: int = 1,
    width: int = 64,
    on_done: Callable[[Trajectory], None] | None = None,
) -> list[list[Trajectory]]:
    """Drive episodes to their end with any writer; consecutive `group_size` episodes form a group.

    An episode that has begun already, such as a fork of another, goes on from where it is.
    """
    if group_size < 1 or width < 1:
        raise ConfigError(f"samples and width must be at least 1, not {group_size} and {width}")
    queue = deque(enumerate(episodes))
    done: dict[int, Trajectory] = {}
    active: dict[int, tuple[int, Episode]] = {}

    def take_up() -> list[Episode]:
        """Episodes from the queue, opened, as many as there is room for; some end before their first turn."""
        opened: list[Episode] = []
        while queue and len(active) < width:
            fresh = [queue.popleft() for _ in range(min(width - len(active), len(queue)))]
            _open([episode for _, episode in fresh if not episode.segments], tokenizer)
            active.update((id(episode), (index, episode)) for index, episode in fresh)
            opened += settle([episode for _, episode in fresh])
        return opened

    def settle(episodes: Sequence[Episode]) -> list[Episode]:
        """Those of the episodes that go on; the others are put away."""
        for episode in episodes:
            if episode.ending is not None:
                index, _ = active.pop(id(episode))
                done[index] = episode.finish()
                if on_done is not None:
                    on_done(done[index])
        return [episode for episode in episodes if episode.ending is None]

    def hear(ready: Sequence[tuple[Episode, Completion]]) -> list[Episode]:
        _react(ready, tokenizer)
        return settle([episode for episode, _ in ready]) + take_up()

    if first := take_up():
        write(first, hear)
    ordered = [done[i] for i in range(len(done))]
    return [ordered[i : i + group_size] for i in range(0, len(ordered), group_size)]


def _open(episodes: Sequence[Episode], tokenizer: Tokenizer) -> None:
    """Write the prompts, after a first search where the protocol wants one."""
    first = [e for e in episodes if e.protocol.retrieves_first]
    found = _search(first, [e.question.text for e in first])
    for episode in episodes:
        if episode.ending is None:
            episode.open(found.get(id(episode), []), tokenizer)


def _react(ready: Sequence[tuple[Episode, Completion]], tokenizer: Tokenizer) -> None:
    """Read what was written, and let the world reply."""
    searching: list[tuple[Episode, str]] = []
    for episode, completion in ready:
        if completion.fault:
            episode.fail(completion.fault)
            continue
        decision = episode.hear(completion)
        if episode.ending is not None:
            continue
        if decision.kind == "search":
            searching.append((episode, decision.text))
        elif decision.kind == "backtrack":
            episode.reply(episode.protocol.backtrack_message, tokenizer)
        elif decision.kind == "invalid":
            episode.reply(episode.protocol.invalid_message, tokenizer)
        else:
            episode.reply("", tokenizer)
    found = _search([e for e, _ in searching], [query for _, query in searching])
    for episode, _ in searching:
        if episode.ending is None:
            episode.tell(found[id(episode)], tokenizer)


def _search(episodes: Sequence[Episode], queries: Sequence[str]) -> dict[int, list[Hit]]:
    """Hits by id(episode); one batched call per distinct retriever. A failure fails its episodes."""
    found: dict[int, list[Hit]] = {}
    batches: dict[tuple[int, int], list[tuple[Episode, str]]] = {}
    for episode, query in zip(episodes, queries, strict=True):
        key = (id(episode.retriever), check_k(episode.limits.top_k))
        batches.setdefault(key, []).append((episode, query))
    for (_, k), batch in batches.items():
        try:
            results = batch[0][0].retriever.search([query for _, query in batch], k)
        except RetrievalError as error:
            for episode, _ in batch:
                episode.fail(f"retrieval failed: {error}")
            continue
        found.update((id(episode), hits) for (episode, _), hits in zip(batch, results, strict=True))
    return found
