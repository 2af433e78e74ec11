"""Features that Linux lists."""

import platform

import pytest

from sleuth.cpu import has_any


@pytest.mark.skipif(platform.system() != "Linux" or platform.machine() != "x86_64", reason="x86-64 Linux")
def test_features_are_found():
    assert has_any("sse2")
    assert has_any("no_such_feature", "sse2")
    assert not has_any("no_such_feature")
