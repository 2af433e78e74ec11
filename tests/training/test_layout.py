import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sleuth.training.update import layout
from sleuth.training.update.layout import Row, plan, rows_of
from sleuth.types import Question, Segment, Trajectory


def made(index: int, prompt: str, response: str) -> Row:
    """A row whose tokens are the characters' codes."""
    tokens = tuple(map(ord, prompt + response))
    return Row(index, tokens, tuple(range(len(prompt), len(tokens))))


def test_a_row_ends_with_the_last_policy_token():
    segments = (
        Segment("prompt", "", (1, 2)),
        Segment("policy", "", (3,)),
        Segment("world", "", (4, 5)),
        Segment("policy", "", (6, 7)),
        Segment("world", "", (8,)),
    )
    expected = Row(4, (1, 2, 3, 4, 5, 6, 7), (2, 5, 6))
    assert rows_of(4, Trajectory(Question("q", "?", ()), segments)) == [expected]
    assert rows_of(0, Trajectory(Question("q", "?", ()), segments[:1])) == []


BACKTRACKED = Trajectory(
    Question("q", "?", ()),
    (
        Segment("prompt", "", (1, 2)),
        Segment("policy", "", (3,), until=4),
        Segment("world", "", (4, 5), until=4),
        Segment("policy", "", (6, 7)),
        Segment("world", "", (8,)),
        Segment("policy", "", (9,)),
    ),
)


def test_a_backtrack_gives_a_row_for_each_context():
    assert rows_of(3, BACKTRACKED) == [
        Row(3, (1, 2, 3, 4, 5, 6, 7), (2, 5, 6), 0),
        # The dropped search is gone; the turn that dropped it is context, not trained again.
        Row(3, (1, 2, 6, 7, 8, 9), (5,), 3),
    ]
    at_the_end = Trajectory(BACKTRACKED.question, BACKTRACKED.segments[:4])
    assert rows_of(0, at_the_end) == [Row(0, (1, 2, 3, 4, 5, 6, 7), (2, 5, 6))]


FIRST, SECOND = "instruction: " + "a" * 40, "instruction: " + "b" * 50


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        # Groups share their own prompt.
        ([(SECOND if i % 2 else FIRST, f"{i}!") for i in range(6)], [(53, [[0, 2, 4]]), (63, [[1, 3, 5]])]),
        # An instruction is shared where nothing longer is, a short common beginning is not.
        ([("instruction: " + c * 3, "answer") for c in "abcd"], [(13, [[0, 1, 2, 3]])]),
        ([("abcdefgx", "1"), ("abcdefgy", "2")], [(0, [[0, 1]])]),
        # No policy token is shared.
        ([("a" * 20, "same words"), ("a" * 20, "same words")], [(20, [[0, 1]])]),
        # Unlike lengths are not padded to one another.
        ([("a" * 60, "b" * 400), ("a" * 60, "c" * 390), ("a" * 60, "d" * 50)], [(60, [[0, 1], [2]])]),
    ],
)
def test_rows_share_prefixes_and_batches(
    texts: list[tuple[str, str]], expected: list[tuple[int, list[list[int]]]]
):
    bundles = plan([made(i, *text) for i, text in enumerate(texts)], max_tokens=10_000)
    found = [
        (bundle.prefix, [sorted(r.index for r in batch) for batch in bundle.batches]) for bundle in bundles
    ]
    assert found == expected


def planned(rows: list[Row], budget: int, cost: int | None) -> list[layout.Bundle]:
    """The plan where a pass costs as much as `cost` tokens; None = without shared prefixes."""
    return plan(rows, budget, share_prefix=cost is not None, pass_tokens=cost or 0)


prompts = st.sampled_from(["a" * 30, "a" * 30 + "b" * 20, "a" * 9, "c" * 12, "cd"])
texts = st.tuples(prompts, st.sampled_from(["x", "yy", "xyz" * 5, "z" * 40]))
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy


@patient
@given(st.lists(texts, max_size=12), st.integers(1, 300), st.sampled_from([None, 0, 30]), st.integers(0, 11))
def test_every_row_once_within_the_budget_and_in_any_order(
    found: list[tuple[str, str]], budget: int, cost: int | None, turn: int
):
    rows = [made(i, *text) for i, text in enumerate(found)]
    bundles = planned(rows, budget, cost)
    batches = [(b.prefix, batch) for b in bundles for batch in b.batches]
    assert sorted(r.index for _, batch in batches for r in batch) == list(range(len(rows)))
    for bundle in bundles:
        beginnings = {r.tokens[: bundle.prefix] for batch in bundle.batches for r in batch}
        assert len(beginnings) == 1, "the prefix is not common to all"
    for prefix, batch in batches:
        assert all(r.targets[0] >= prefix for r in batch)
        longest = max(len(r.tokens) for r in batch)
        assert len(batch) == 1 or prefix + len(batch) * (longest - prefix) <= budget
    reordered = [*rows[turn:], *rows[:turn]][::-1]
    assert planned(reordered, budget, cost) == bundles


@patient
@given(st.lists(texts, min_size=1, max_size=12), st.sampled_from([0, 30]))
def test_sharing_never_computes_more_tokens_than_plain_rows_hold(found: list[tuple[str, str]], cost: int):
    rows = [made(i, *text) for i, text in enumerate(found)]
    assert sum(b.num_tokens for b in planned(rows, 1, cost)) <= sum(len(r.tokens) for r in rows)


@pytest.mark.parametrize(
    ("pass_tokens", "prompt", "response", "count", "shares"),
    [
        (512, 600, 60, 7, True),
        (512, 100, 330, 6, False),
        (512, 100, 330, 2, False),
        (512, 1500, 150, 7, True),
        (48, 100, 330, 6, True),
        (48, 30, 330, 2, False),
    ],
)
def test_a_prefix_is_shared_where_it_saves_more_than_its_passes_cost(
    pass_tokens: int, prompt: int, response: int, count: int, shares: bool
):
    rows = [made(i, "a" * prompt, chr(98 + i) * response) for i in range(count)]
    assert [bool(bundle.prefix) for bundle in plan(rows, 2048, pass_tokens=pass_tokens)] == [shares]
