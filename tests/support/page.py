"""A page of HTML as tests look at it."""

import re
from html.parser import HTMLParser

VOID = {"meta", "img", "br"}
HOSTILE = "</div></script><script>alert(1)</script><img src=x onerror=alert(2)>\" ' & {{ 7*7 }} ${x} |"
"""Text that must stay text."""


class Page(HTMLParser):
    """Tags, attributes and words; every element must be closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html = html
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)

    def check_self_contained(self) -> None:
        """The page loads nothing and runs nothing."""
        assert not {"script", "link", "iframe", "img", "object", "embed", "base", "form"} & set(self.tags)
        assert not [name for name, _ in self.attributes if name in ("src", "href", "srcset", "action")]
        assert not re.search(r"url\((?!#)|@import", self.html)
        assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in self.attributes

    def check_hostile_text_is_text(self) -> None:
        """HOSTILE is shown in many places and is markup in none."""
        self.check_self_contained()
        assert not [name for name, _ in self.attributes if name.startswith("on")]
        assert self.text.count("<script>alert(1)</script>") > 10
        assert "{{ 7*7 }}" in self.text
