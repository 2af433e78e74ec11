import subprocess
import sys

import pytest

from sleuth.algorithms import ALGORITHMS
from sleuth.algorithms.base import Algorithm
from sleuth.errors import ConfigError
from sleuth.registry import resolve


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_name_is_an_algorithm(name: str):
    assert issubclass(resolve("algorithms", ALGORITHMS, name), Algorithm)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'grpo'"):
        resolve("algorithms", ALGORITHMS, "grop")


def test_naming_an_algorithm_needs_no_torch():
    code = "import sys; from sleuth.algorithms import grpo, sft; grpo.GRPO(); sft.SFT(); assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
