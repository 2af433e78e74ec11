import sys
from pathlib import Path
from time import process_time

import pytest

from sleuth.corpora.documents import MissingParserError, Section, read_sections
from sleuth.errors import DataError
from support.pdf import pdf


def sections(tmp_path: Path, name: str, content: str | bytes) -> list[Section]:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_sections(path)


def plain(found: list[Section]) -> list[tuple[str, str]]:
    return [(section.heading, " ".join(section.text.split())) for section in found]


def test_markdown_headings_open_sections(tmp_path: Path):
    text = (
        "---\ntitle: x\n---\nBefore *all*.\n\n# First `part`\n\nSee [the docs](http://x) and ![a map](m.png).\n\n"
        "```\n# no heading\n```\n\nSecond\n======\n\n- one\n- two\n\n| a | b |\n|---|---|\n| c | d |\n\n## Empty\n"
    )
    assert plain(sections(tmp_path, "a.md", text)) == [
        ("", "Before all."),
        ("First part", "See the docs and a map. # no heading"),
        ("Second", "one two a b c d"),
    ]


@pytest.mark.parametrize("start", ["title: x", "tags:\n- a\n\n- b", '"my-key" : 1'])
@pytest.mark.parametrize("end", ["---", "..."])
def test_front_matter_is_left_out(tmp_path: Path, start: str, end: str):
    assert plain(sections(tmp_path, "a.md", f"---\n{start}\n{end}\nText.\n")) == [("", "Text.")]


@pytest.mark.parametrize("start", ["\nFirst", "\ntitle: First", "First", "See http://First", "https://First"])
def test_text_between_two_rules_is_no_front_matter(tmp_path: Path, start: str):
    found = plain(sections(tmp_path, "a.md", f"---\n{start}\n\n---\n\nSecond\n"))
    assert found == [("", f"{start.strip()} Second")]


def test_markdown_keeps_the_text_of_html_in_it(tmp_path: Path):
    text = "<details><summary>More</summary>\n<p>Hidden text</p></details>\n\n<script>bad()</script>\n"
    assert plain(sections(tmp_path, "a.md", text)) == [("", "More Hidden text")]


def test_html_headings_open_sections_and_what_is_not_read_is_dropped(tmp_path: Path):
    page = """<!doctype html><html><head><title>T</title><style>p {}</style></head><body><nav>Menu</nav>
    <!-- comment --><p>Before <b>al</b>l.<br>Next</p><h1>First <i>part</i></h1><div>One<p>two</p>three</div>
    <script>bad()</script><h3>Second</h3><ul><li>a</li><li>b</li></ul><table><tr><td>c</td><td>d</td></tr></table>"""
    assert plain(sections(tmp_path, "a.html", page)) == [
        ("", "Before all. Next"),
        ("First part", "One two three"),
        ("Second", "a b c d"),
    ]


def test_a_heading_without_text_begins_the_deeper_one_below_it(tmp_path: Path):
    text = "# Kestrel\n\n## Install\n\nRun make.\n\n## Use\n\nFly.\n\n## Old\n\n## New\n\nLand."
    found = [("Kestrel › Install", "Run make."), ("Use", "Fly."), ("New", "Land.")]
    assert plain(sections(tmp_path, "a.md", text)) == found


def test_a_tag_in_prose_hides_nothing(tmp_path: Path):
    text = "Use the <style> tag.\n\nMore <b>text</b>.\n\n# Later\n\nEnd."
    assert plain(sections(tmp_path, "a.md", text)) == [
        ("", "Use the <style> tag. More text."),
        ("Later", "End."),
    ]


def test_deep_lists_are_read_to_their_end(tmp_path: Path):
    text = "\n".join("  " * level + f"- level{level}" for level in range(16))
    ((_, found),) = plain(sections(tmp_path, "a.md", text))
    assert found.split() == [f"level{level}" for level in range(16)]


def test_latin_1_is_read_as_browsers_do_and_options_are_words(tmp_path: Path):
    page = b"<meta charset=iso-8859-1><p>It\x92s</p><select><option>One</option><option>Two</option></select>"
    assert plain(sections(tmp_path, "a.html", page)) == [("", "It’s One Two")]


def test_html_may_declare_another_encoding_but_none_is_guessed(tmp_path: Path):
    latin = '<meta charset="iso-8859-1"><p>Café</p>'.encode("latin-1")
    assert plain(sections(tmp_path, "a.html", latin)) == [("", "Café")]
    with pytest.raises(DataError, match="1: text: not UTF-8: byte 0xe9"):
        sections(tmp_path, "b.html", "<p>Café</p>".encode("latin-1"))
    with pytest.raises(DataError, match="nonsense"):
        sections(tmp_path, "c.html", b'<meta charset="nonsense"><p>Caf\xe9</p>')


def test_pdf_pages_are_sections(tmp_path: Path):
    found = plain(sections(tmp_path, "a.pdf", pdf("Hello Pell.", "Second page.")))
    assert found == [("page 1", "Hello Pell."), ("page 2", "Second page.")]


def test_encrypted_pdf(tmp_path: Path):
    pypdf = pytest.importorskip("pypdf")
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf("Hello Pell."))
    for password, readable in (("secret", False), ("", True)):
        writer = pypdf.PdfWriter(clone_from=path)
        writer.encrypt(user_password=password, owner_password="owner", algorithm="RC4-128")
        locked = tmp_path / "locked.pdf"
        with locked.open("wb") as stream:
            writer.write(stream)
        if readable:
            assert plain(read_sections(locked)) == [("page 1", "Hello Pell.")]
        else:
            with pytest.raises(DataError, match="encrypted"):
                read_sections(locked)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        pdf("Hello")[:300],
        pdf("Hello").replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]"),
        pdf("Hello", trailer="/Encrypt << /Filter /Standard /V 9 >>"),
        pdf(""),
    ],
)
def test_an_unreadable_pdf_is_a_data_error(tmp_path: Path, content: bytes):
    with pytest.raises(DataError, match=r"not a readable PDF|no text \(scanned\?\)"):
        sections(tmp_path, "a.pdf", content)


@pytest.mark.parametrize("step", range(0, 700, 23))
def test_a_pdf_with_damaged_bytes_is_read_or_reported(tmp_path: Path, step: int):
    content = bytearray(pdf("Hello Pell.", "Second page."))
    content[step : step + 11] = b"\xff<<[(/9 0 R"
    try:
        found = sections(tmp_path, "a.pdf", bytes(content))
    except DataError:
        return
    assert all(section.text.strip() for section in found)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.txt", b"one\ntwo\n\xff\n", "3: text: not UTF-8: byte 0xff"),
        ("a.md", b"\xfe\xff\x00a", "not UTF-8"),
        ("a.txt", b"\x7fELF\x00\x01", "1: text: holds NUL bytes"),
        ("a.txt", b"", "no text"),
        ("a.md", b"# Only a heading\n", "no text"),
        ("a.html", b"<script>x</script>", "no text"),
        ("a.rtf", b"x", "unknown format"),
    ],
)
def test_an_unreadable_document_has_a_reason(tmp_path: Path, name: str, content: bytes, reason: str):
    with pytest.raises(DataError, match=reason):
        sections(tmp_path, name, content)


def test_byte_order_mark_and_line_ends(tmp_path: Path):
    (found,) = sections(tmp_path, "a.txt", b"\xef\xbb\xbfone\r\n\r\ntwo\rthree")
    assert found == Section("", "one\n\ntwo\nthree")


@pytest.mark.parametrize(("name", "module"), [("a.html", "bs4"), ("a.pdf", "pypdf")])
def test_a_missing_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingParserError, match=rf"{module} is not installed: pip install '\.\[folder\]'"):
        sections(tmp_path, name, b"<p>x</p>")


@pytest.mark.parametrize(
    "content", ["*" * 100_000, "[" * 50_000, "> " * 5_000 + "x", "`" * 50_000 + "a", "<div>" * 5_000 + "x"]
)
@pytest.mark.parametrize("name", ["a.md", "a.html"])
def test_hostile_markup_ends(tmp_path: Path, name: str, content: str):
    try:
        found = sections(tmp_path, name, content)
    except DataError:
        return
    assert all(section.text.strip() for section in found)


@pytest.mark.parametrize("unit", ["<b>x", "x<br>"])
def test_the_time_for_html_grows_with_its_length(tmp_path: Path, unit: str):
    start = process_time()
    assert "".join(sections(tmp_path, "a.html", unit * 20_000)[0].text.split()) == "x" * 20_000
    assert process_time() - start < 10  # under a second; half a minute where it grows with the square
