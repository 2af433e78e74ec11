"""Values of Checked dataclasses: what is accepted, and the one line for what is not."""

import math
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from sleuth.checked import Checked, Fraction, NonEmpty, NonNegativeFloat, Positive, PositiveFloat
from sleuth.errors import ConfigError


class Part:
    """A component, which is not checked."""


@dataclass(frozen=True, slots=True)
class Sample(Checked):
    size: Positive = 1
    rate: PositiveFloat = 0.5
    share: Fraction = 0.5
    cosine: Annotated[float, Meta(ge=-1, lt=1)] = 0.0
    plain: float = 0.0
    kind: Literal["k1", "k2", "k3"] = "k1"
    stage: Literal[1, 2] = 1
    parts: tuple[Literal["a", "b"], ...] = ()
    weights: tuple[NonNegativeFloat, float, float] = (1.0, 1.0, 1.0)
    most: Positive | None = None
    name: NonEmpty = "x"
    flag: bool = False
    part: Part | None = None


@dataclass(frozen=True)
class Larger(Sample):
    least: int = 0

    def cross_check(self) -> None:
        if self.least > self.size:
            raise ConfigError(f"larger.least ({self.least}) is more than larger.size ({self.size})")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": 0}, "sample.size must be at least 1, not 0"),
        ({"size": True}, "sample.size must be int, not True"),
        ({"rate": 0}, "sample.rate must be more than 0, not 0"),
        ({"rate": math.inf}, "sample.rate must be finite, not inf"),
        ({"plain": math.nan}, "sample.plain must be finite, not nan"),
        ({"plain": "1"}, "sample.plain must be float, not '1'"),
        ({"cosine": 1}, "sample.cosine must be less than 1, not 1"),
        ({"kind": "x"}, "sample.kind must be one of k1, k2, k3, not 'x'"),
        ({"parts": ("a", "c")}, "sample.parts[1] must be one of a, b, not ('a', 'c')"),
        ({"weights": (-1.0, 0.0, 0.0)}, "sample.weights[0] must be at least 0, not (-1.0, 0.0, 0.0)"),
        ({"weights": (1.0, 0.0)}, "sample.weights must be tuple of length 3, not (1.0, 0.0)"),
        ({"weights": (1.0, -math.inf, 0.0)}, "sample.weights must be finite, not (1.0, -inf, 0.0)"),
        ({"most": 0}, "sample.most must be at least 1, not 0"),
        ({"most": "many"}, "sample.most must be int | None, not 'many'"),
        ({"name": ""}, "sample.name must be str of length >= 1, not ''"),
        ({"flag": 1}, "sample.flag must be bool, not 1"),
    ],
)
def test_one_line_for_a_bad_value(values: dict[str, Any], message: str):
    with pytest.raises(ConfigError) as caught:
        Sample(**values)
    assert str(caught.value) == message


def test_good_values_pass_as_they_are_and_components_are_not_checked():
    part = Part()
    made = Sample(2, 1, 1.0, -1, -3.5, "k3", 2, ("b", "a"), (0, -1.0, 1), 7, "y", True, part)
    assert (made.size, made.rate, made.weights, made.part) == (2, 1, (0, -1.0, 1), part)
    assert Sample(part="not a part").part == "not a part"  # type: ignore[arg-type]


def test_inherited_fields_are_checked_before_the_cross_check():
    assert Larger(size=3, least=3).least == 3
    with pytest.raises(ConfigError, match=r"larger.size must be at least 1, not 0"):
        Larger(size=0, least=3)
    with pytest.raises(ConfigError, match=r"larger.least \(3\) is more than larger.size \(1\)"):
        Larger(least=3)
    with pytest.raises(ConfigError, match="rate"):
        replace(Larger(), rate=-1.0)


@given(st.integers() | st.floats() | st.text(max_size=3) | st.booleans() | st.none())
def test_a_value_is_accepted_exactly_if_its_annotation_allows_it(value: Any):
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    allowed = {
        "size": isinstance(value, int) and number and value >= 1,
        "rate": number and value > 0,
        "share": number and 0 <= value <= 1,
        "plain": number,
        "most": value is None or (isinstance(value, int) and number and value >= 1),
        "name": isinstance(value, str) and value != "",
        "flag": isinstance(value, bool),
    }
    for name, expected in allowed.items():
        with nullcontext() if expected else pytest.raises(ConfigError, match=f"sample.{name} must be"):
            Sample(**{name: value})
