"""docs/architecture.md: the walk from the command line to the weights names files and functions that exist and call one another."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sleuth"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
STEP = re.compile(r"^\| \d+ \| `([\w/.]+): ([\w.]+)` \|", re.MULTILINE)
NAMED = re.compile(r"`((?:\w+/)*\w+\.py)(?:: ([\w.]+))?`")


def test_the_walk_has_at_most_eight_files():
    steps = STEP.findall(PAGE)
    assert 5 <= len(steps) <= 8
    assert len({file for file, _ in steps}) == len(steps)
    assert steps[0][0].startswith("cli/")
    assert steps[-1][0].startswith("training/")


def test_each_file_of_the_walk_is_reached_from_an_earlier_one():
    reached = ""
    for file, _ in STEP.findall(PAGE):
        module = "sleuth." + file.removesuffix(".py").replace("/", ".")
        # A recipe names its own algorithm and reward, so those two are reached through its slots.
        in_a_slot = file.startswith(("algorithms/", "rewards/"))
        assert not reached or module in reached or in_a_slot, f"nothing before imports {file}"
        reached += (SOURCE / file).read_text(encoding="utf-8")
        if file == "training/loop.py":
            reached += (SOURCE / "episodes" / "world.py").read_text(encoding="utf-8")


def test_every_file_and_name_on_the_page_exists():
    for file, name in NAMED.findall(PAGE):
        found = [root / file for root in (SOURCE, ROOT) if (root / file).is_file()]
        assert found, file
        for part in filter(None, name.split(".")):
            code = found[0].read_text(encoding="utf-8")
            assert re.search(rf"^\s*(?:async )?(?:def|class) {part}\b", code, re.MULTILINE), f"{file}: {name}"


def test_training_names_no_method():
    names = re.compile(
        r"evo-?_?rag|eviomni|evinote|\barena\b|eval-?_?rar|autorefine|search-?_?r1|isinstance\(.*(?:Reward|Algorithm)",
        re.IGNORECASE,
    )
    for path in (SOURCE / "training").rglob("*.py"):
        assert not names.search(path.read_text(encoding="utf-8")), path.name
