from pathlib import Path

from sleuth.hub_layout import write_layout

OWN = """
from sleuth.recipes import load_recipe

RECIPE = load_recipe("rag/cpu")
"""


def test_a_run_of_a_users_own_file_takes_the_files_that_it_imports(tmp_path: Path):
    run = tmp_path / "run"
    (run / "model").mkdir(parents=True)
    (run / "model" / "config.json").write_text("{}")
    (run / "recipe.py").write_text(OWN)
    (run / "recipe.json").write_text('{"settings": []}')
    (run / "my_parts.py").write_text("")
    write_layout(run, tmp_path / "hub")
    names = {file.name for file in (tmp_path / "hub").iterdir()}
    assert names == {"README.md", "config.json", "recipe.py", "recipe.json", "my_parts.py"}
