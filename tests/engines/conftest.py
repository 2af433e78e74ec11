import pytest


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None:
    """Every engine test runs on one thread, whatever the machine has; test_lanes sets more by itself."""
