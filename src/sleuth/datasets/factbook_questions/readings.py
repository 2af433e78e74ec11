"""Readers: text of a Factbook field → a short answer, or None where the field has no single clear one.

Every value occurs in the text word for word, apart from letter case. Readers refuse lists where one
answer is wanted, remarks, "none" and negative figures: the SQuAD normaliser would delete the sign.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Reading(NamedTuple):
    """Answer read from a field."""

    value: str  # Such as "Ouagadougou" or "274,200 sq km".
    number: float | None = None  # Value for comparisons; of a date, YYYYMMDD.
    aliases: tuple[str, ...] = ()  # Other accepted answers.


Reader = Callable[[str], Reading | None]

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_DAY = rf"\b(\d{{1,2}}) ({'|'.join(MONTHS)})"
_DIGITS = r"\d+(?:,\d{3})*(?:\.\d+)?"
_SCALE = {"million": 1e6, "billion": 1e9, "trillion": 1e12}
_UNCLEAR = re.compile(
    r"[\d,;:()\"\[\]%/]| - |--|^(?:none|na|no|unnamed|not|in transition|see)\b", re.IGNORECASE
)


def plain(text: str) -> str:
    """Text without accents: "San Jose"."""
    marks = unicodedata.normalize("NFD", text.replace("’", "'"))
    return "".join(c for c in marks if not unicodedata.combining(c))


def ordinary(text: str) -> str:
    """Capitals as in running text: "al-BURHAN" → "al-Burhan"; "VI" and single letters are kept."""
    runs = re.split(r"([^\W\d_]+)", text)
    return "".join(r.capitalize() if r.isupper() and not re.fullmatch(r"[IVX]+|.", r) else r for r in runs)


def short(value: str, *aliases: str, most_words: int = 4) -> Reading | None:
    """Name of at most `most_words` words, without figures, lists or remarks."""
    value = value.strip()
    if not 0 < len(value.split()) <= most_words or _UNCLEAR.search(value):
        return None
    spellings = dict.fromkeys(alias.strip() for alias in (*aliases, plain(value)))
    # A bracket may hold a remark instead of another name: "(highest point in Africa)".
    names = (a for a in spellings if a and a != value and len(a.split()) <= 3 and not re.search(r"\d|,|/", a))
    return Reading(value, None, tuple(names))


def matched(pattern: str, refuse: str = "(?!)", most_words: int = 4) -> Reader:
    """Reader of the pattern's first group; its other groups are aliases. Refuses texts that contain `refuse`."""

    def read(text: str) -> Reading | None:
        found = re.match(pattern, text)
        if found is None or re.search(refuse, text):
            return None
        return short(found[1], *filter(None, found.groups()[1:]), most_words=most_words)

    return read


def code(pattern: str) -> Reader:
    """Reader of a code that is the whole text; groups as in `matched`."""

    def read(text: str) -> Reading | None:
        found = re.fullmatch(pattern, text)
        return Reading(found[1], None, found.groups()[1:]) if found else None

    return read


def figure(pattern: str, *aliases: str) -> Reader:
    """Reader of the pattern's first group, in which N is a figure; in `aliases`, {} stands for its digits."""
    wanted = re.compile(pattern.replace("N", _DIGITS))

    def read(text: str) -> Reading | None:
        found = wanted.match(text)
        if found is None:
            return None
        digits = re.findall(_DIGITS, found[1])[0]
        return Reading(found[1], _number(found[1]), tuple(alias.format(digits) for alias in aliases))

    return read


def quantity(unit: str, *spelled: str) -> Reader:
    """Reader of a positive figure with its unit: "274,200 sq km"."""
    return figure(rf"(?!0 )(N {unit})(?![a-z])", "{}", *(f"{{}} {word}" for word in spelled))


def rate(unit: str, *spelled: str) -> Reader:
    """Reader of a figure whose unit the question names: "14.7" of "14.7 births/1,000 population"."""
    return figure(rf"(?!0 )(N) {unit}(?![a-z])", *(f"{{}} {word}" for word in (unit, *spelled)))


def person(titles: str) -> Reader:
    """Reader of the holder of one of these offices: "Emmanuel Macron"; the surname is an alias."""
    pattern = re.compile(
        rf"(?:{titles}) (?:(?:Dr|Col|Gen)\. )*([^,;(\[]+?) \(since [^()]*\)(?!.*(?:represented by|\(since))"
    )

    def read(text: str) -> Reading | None:
        found = pattern.match(text)
        words = found[1].split() if found else []
        if found is None or len(words) < 2 or re.search(r"[\"“]| and ", found[1]):
            return None
        surname = (w for w in words if w.isupper() and not re.fullmatch(r"[IVX]+|[A-Z]\.?", w))
        return short(ordinary(found[1]), ordinary(" ".join(surname)), most_words=5)

    return read


name = matched(r"(.*?)\s*(?:[(;]|,? note\b|$)")  # Whole text as a short name, without a remark after it.
place = matched(rf"(?![a-z])([^\d,;()]+?)(?: \(([^()]*)\))? -?{_DIGITS}(?: ?m\b|$)")
"""Name in "Mont Blanc 4,810 m"; descriptions begin with a small letter: "near Raczki Elblaskie"."""
height = figure(r"[^\d;]+? (N m)\b", "{}", "{} meters")  # Height in "Mont Blanc 4,810 m".
local_name = matched(r"[^()]+ \((?!.*\b(?:Parliament|National Legislature)\b)([^()]+)\)\s*$", most_words=3)
""" "Knesset" in "Parliament (Knesset)"; a few entries have the English name in brackets."""
first_listed = matched(r"(?=.*,)([a-z].*?)(?:,| \()", most_words=3)  # First item of a list in order of size.
majority = matched(
    r"(?!Other|Mixed|Unspecified)([A-Z][\w'’-]*(?:[ /][\w'’-]+){0,3})(?: \([^()]*\))? "
    r"(?!50(?:\.0+)?%)(?:[5-9]\d|100)(?:\.\d+)?%"
)
"""First group of "Muslim 63.8%, Roman Catholic 20%", if it is more than half."""
official_language = matched(
    r"(?:.*, )?([A-Z][a-zA-Z]+(?: [A-Z][a-zA-Z]+)?)(?: [\d.]+%)? \(official\)",
    refuse=r"(?i)official.*official|note.*official",
)
"""The only language marked official."""
origin = matched(r"[^;(]*\(from (?:the )?([A-Z][A-Za-z ]+)\)(?!(?:(?!notable earlier dates).)*\(from )")
"""Country in "1 August 1960 (from France)"."""
count = figure(r"(\d{1,3}(?:,\d{3})*)(?=\s*(?:\(|$|;))")  # Whole number, alone or before a remark.
percent = figure(r"(N%)", "{} percent")
index = figure(r"(N)(?=\s|$)")  # Decimal figure without a unit.
money = figure(r"(\$N(?: (?:million|billion|trillion))?)(?=\s|$)")


def single(text: str) -> Reading | None:
    """Like `name`, but None where a list, an "or", a plural or a second value follows."""
    bare = re.sub(r"\s*\([^()]*\)", "", text).strip()
    return None if re.search(r"[,;]| or | and |\bstars\b|\bflames\b", bare) else short(bare)


def capital(text: str) -> Reading | None:
    """Capital; None where several cities share the offices."""
    if re.search(r"\bcapital|seat of|\baka\b|located", text.split("; note", maxsplit=1)[0]):
        return None
    if text.startswith("Washington,"):
        return Reading("Washington, D.C.", None, ("Washington", "Washington DC"))
    return name(text.replace(" in Romanian", ""))


def quoted(text: str) -> Reading | None:
    """The only title in quotes; its translation in brackets is an alias."""
    found = re.match(r'"([^"]+?)[ .,]*"(?: \((?![Nn]ational [Aa]nthem\))([^()"]+)\))?', text)
    if not found or text.count('"') != 2 or len(found[1].split()) > 7:
        return None
    names = dict.fromkeys((plain(found[1]), found[2]))
    return Reading(found[1], None, tuple(name for name in names if name and name != found[1]))


def independence(text: str) -> Reading | None:
    """The only date of independence; None for the founding of a state that nobody else had ruled."""
    text = text.split("notable earlier dates", maxsplit=1)[0]
    dates = re.findall(rf"{_DAY} (\d{{4}})\b", text)
    if len(dates) != 1 or not re.match(r"\d[^(;]*(\((from|independence|declared)|$)", text):
        return None
    day, month, year = dates[0]
    number = float(f"{year}{MONTHS.index(month) + 1:02}{int(day):02}")
    return Reading(f"{day} {month} {year}", number, (f"{month} {day}, {year}",))


def holiday(text: str) -> Reading | None:
    """Day and month of a single holiday: "14 July"."""
    days = re.findall(rf"{_DAY}\b", text)
    if len(days) != 1 or ";" in text:
        return None
    day, month = days[0]
    return Reading(f"{day} {month}", None, (f"{month} {day}",))


def currency(text: str) -> Reading | None:
    """ "kyats" in "kyats (MMK) per US dollar -"; the code and the singular are aliases."""
    found = re.match(r"([A-Za-zÀ-ÿ' ]+?) \(([A-Z]{3})\)", text)
    return short(found[1], re.sub(r"(?<!s)s$", "", found[1]), found[2]) if found else None


def former(text: str) -> Reading | None:
    """First former name; the others are aliases."""
    names = re.sub(r" \([^()]*\)", "", text).split(",")
    return None if re.search(r"sometimes|formerly|with |;|\d", text) else short(*names)


def largest_city(text: str) -> Reading | None:
    """Most populous of several urban areas; None if two are equal."""
    pattern = rf"({_DIGITS}(?: million)?) ([^,;()\d]+?)(?: \(capital\))?(?: \(\d{{4}}\))?(?:[,;]|$)"
    found = re.findall(pattern, text)
    cities = {_number(size): city for size, city in found}
    return short(ordinary(cities[max(cities)])) if 1 < len(found) == len(cities) else None


def partners(text: str) -> list[tuple[str, float]]:
    """Name and percentage of each country in "China 27%, Bahamas, The 11%"."""
    items = re.findall(r"([A-Z][^,%]*(?:, (?:The|Republic of the|Democratic Republic of the))?) (\d+)%", text)
    return [(name.strip(), float(share)) for name, share in items]


def borders(text: str) -> list[tuple[str, float]]:
    """Name and length of each border in "Italy 476 km; Spain 646 km (of which …)"; empty if one is unclear."""
    items = re.split(r"[;,] (?=[A-Z])", re.sub(r" \([^()]*\)", "", text))
    found = [re.match(rf"(.+?) ({_DIGITS}) ?km", item) for item in items]
    return [(f[1].strip(), _number(f[2])) for f in found if f] if all(found) else []


def waters(text: str) -> list[str]:
    """Seas and oceans in "…, bordering the Baltic Sea and the Gulf of Finland, between …"."""
    found = re.search(r"bordering (.+?)(?:, (?:between|north|south|east|west|about|as well)|;|$)", text)
    named = r"(?:Gulf|Bay|Strait) of [A-Z]\w+(?: [A-Z]\w+)?|(?:[A-Z]\w+ )+(?:Sea|Ocean|Gulf|Channel)"
    return re.findall(named, found[1]) if found else []


def official_languages(text: str) -> list[str]:
    """Languages marked official."""
    pattern = r"(?:^|, |and )([A-Z][a-zA-Z]+)(?: [\d.]+%)? \(official\)"
    return re.findall(pattern, text.split("note", maxsplit=1)[0])


def _number(text: str) -> float:
    """Value of "274,200 km" or "$2.241 trillion"."""
    digits, scale = re.findall(rf"({_DIGITS})(?: (\w+))?", text)[0]
    return float(digits.replace(",", "")) * _SCALE.get(scale, 1.0)


def largest(amounts: Callable[[str], Sequence[tuple[str, float]]]) -> Reader:
    """Reader of the name with the largest of at least two amounts; None if two are equal."""

    def read(text: str) -> Reading | None:
        first, second, *_ = (*sorted(amounts(text), key=lambda item: -item[1]), ("", 0.0), ("", 0.0))
        return Reading(first[0]) if first[1] > second[1] > 0 else None

    return read


first_partner = largest(partners)
border = largest(borders)  # Neighbor with the longest land border.
