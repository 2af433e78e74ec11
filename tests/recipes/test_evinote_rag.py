"""EviNote-RAG's recipes: another judge, demonstrations with marks."""

from sleuth.protocols.demonstration import write_turn
from sleuth.recipes import load_recipe
from sleuth.recipes.evinote_rag import SCRIPT
from sleuth.recipes.evinote_variants import RECIPES
from sleuth.rewards.evinote import EviNoteReward
from sleuth.rollouts.transcript import read_transcript
from sleuth.types import Hit, Hop, Passage, Question


def test_the_judge_can_be_swapped_from_the_command_line():
    recipe = load_recipe("evinote-rag/cpu").with_settings(["reward.judge=small"])
    assert type(recipe.reward.judge).__name__ == "SmallJudge"  # type: ignore[attr-defined]


def test_demonstrations_write_both_marks_and_obey_the_grammar():
    passages = [Passage("a", "Rocky", "Rocky won in 1976."), Passage("b", "Year", "It was held in 1977.")]
    hops = (Hop("who won", "a", "1976", "the winner"), Hop("year held", "b", "1977", "the year"))
    question = Question("q", "When?", ("1977",), hops=hops)
    shown: list[list[Hit]] = []
    rows = []
    for turn in range(3):
        text = write_turn(SCRIPT, "summary", question, shown)
        rows.append(("model", text))
        if turn < 2:
            rows.append(("environment", "<information>x</information>"))
            shown.append([Hit(passages[turn], 1.0)])
    trajectory = read_transcript(RECIPES["cpu"].protocol, question, rows)
    assert trajectory.malformed == ""
    assert EviNoteReward().is_marked(trajectory)
    (score,) = RECIPES["cpu"].reward.score([trajectory])
    assert score.total > 1.0
