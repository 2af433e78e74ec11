"""Limits of a server of agents."""

from dataclasses import dataclass, field

from sleuth.checked import Checked, Positive, PositiveFloat
from sleuth.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Limits(Checked):
    """Settings of a server."""

    max_running: Positive = 16
    """Episodes played at a time; an embedded model shares its cores among them."""
    max_waiting: Positive = 1000
    """Requests waiting for a slot beyond which a request gets 429."""
    timeout_s: PositiveFloat = 300.0
    """Seconds from a request to the end of its reply, the wait for a slot included."""
    max_body_bytes: Positive = 1 << 20
    """Largest request body in bytes."""
    token: str = field(default="", repr=False)
    """Bearer token that clients must send, visible ASCII characters; "" disables the check."""

    def cross_check(self) -> None:
        """Refuse a token that no header can carry, without showing it."""
        if not all("!" <= letter <= "~" for letter in self.token):
            raise ConfigError("the token must consist of visible ASCII characters without spaces")
