import subprocess
import sys

import pytest

from sleuth.engines import open_engine
from sleuth.errors import ConfigError


def test_open_scripted() -> None:
    assert open_engine("scripted", reply=["x"]).name == "scripted"
    with pytest.raises(ConfigError, match="reply="):
        open_engine("scripted")


@pytest.mark.parametrize("spec", ["openai:", "openai:http://x", "openai:#m", "openai", " "])
def test_a_spec_that_names_no_model(spec: str) -> None:
    with pytest.raises(ConfigError, match=r"openai:<base_url>#<model>|empty"):
        open_engine(spec)


def test_importing_the_room_loads_nothing_heavy() -> None:
    code = (
        "import sys, sleuth.engines, sleuth.engines.scripted, sleuth.engines.smollm2;"
        "print(sorted({'torch', 'transformers', 'httpx'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
