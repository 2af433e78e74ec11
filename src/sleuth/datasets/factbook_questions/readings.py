"""Text of a Factbook field → a short answer, or None where the field holds none that is short and clear.

Every value stands in the text word for word (letter case aside). What a reader refuses is never
asked about: lists where one answer is wanted, remarks, "none" and "NA", negative figures (whose
sign the SQuAD normaliser deletes), and anything a person could read in two ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from sleuth.datasets.factbook_questions.countries import named, plain


class Reading(NamedTuple):
    """What a field says."""

    value: str
    """As an answer: "Ouagadougou", "274,200 sq km"."""
    number: float | None = None
    """For comparisons."""
    aliases: tuple[str, ...] = ()
    """Other answers that are right."""


Reader = Callable[[str], Reading | None]

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_MONTH = "|".join(MONTHS)
_DIGITS = r"\d+(?:,\d{3})*(?:\.\d+)?"
_DATE = re.compile(rf"\b(\d{{1,2}}) ({_MONTH}) (\d{{4}})\b")
HEADS = ("President", "King", "Queen", "Emperor", "Sultan", "Amir", "Prince", "Grand Duke", "Supreme Leader")
"""Titles of heads of state."""
_SCALE = {"million": 1e6, "billion": 1e9, "trillion": 1e12}
_PERCENT_ITEM = re.compile(r"([A-Z][\w'’-]*(?:[ /][\w'’-]+){0,3})(?: \([^()]*\))? (\d+(?:\.\d+)?)%")


def short(value: str, *aliases: str, most_words: int = 4) -> Reading | None:
    """A name of a few words without figures, lists or remarks."""
    value = value.strip()
    fine = 0 < len(value.split()) <= most_words and not re.search(r"[\d,;:()\"\[\]%/]| - |--", value)
    if not fine or re.match(r"(none|na|no|unnamed|not|in transition|see)\b", value, re.IGNORECASE):
        return None
    spellings = dict.fromkeys(a.strip() for a in (*aliases, plain(value)))
    # A bracket may hold a remark instead of another name: "(highest point in Africa)".
    names = (a for a in spellings if a and a != value and len(a.split()) <= 3 and not re.search(r"\d|,|/", a))
    return Reading(value, None, tuple(names))


def before_remark(text: str) -> str:
    """The text up to its first bracket, semicolon or remark."""
    return re.split(r"\s*[(;]|,? note\b", text, maxsplit=1)[0].strip()


def name(text: str) -> Reading | None:
    """The whole text, if it is a short name; a remark behind it is left out."""
    return short(before_remark(text))


def single(text: str) -> Reading | None:
    """Like `name`, and nothing else is named: no list, no "or", no second value behind the remark, no plural."""
    bare = re.sub(r"\s*\([^()]*\)", "", text).strip()
    return None if re.search(r"[,;]| or | and |\bstars\b|\bflames\b", bare) else short(bare)


def capital(text: str) -> Reading | None:
    """A capital; none where the offices are divided between several."""
    if re.search(r"\bcapital|seat of|\baka\b|located", text.split("; note", maxsplit=1)[0]):
        return None
    value = before_remark(text).removesuffix(" in Romanian")
    washington = value.startswith("Washington,")
    return Reading("Washington, D.C.", None, ("Washington", "Washington DC")) if washington else short(value)


def internet_code(text: str) -> Reading | None:
    """ ".fr"."""
    match = re.fullmatch(r"(\.[a-z]{2})", text.strip())
    return Reading(match.group(1), None, (match.group(1)[1:],)) if match else None


def prefix(text: str) -> Reading | None:
    """A prefix of one or two signs, such as "5R"."""
    return Reading(text) if re.fullmatch(r"[A-Z0-9]{2}", text) else None


def quoted(text: str) -> Reading | None:
    """The one title in quotes; the translation behind it is an alias."""
    match = re.match(r'"([^"]+?),?"(?: \(([^()"]+)\))?', text)
    if not match or text.count('"') != 2 or len(match.group(1).split()) > 7:
        return None
    value = match.group(1).strip(" .")
    translation = "" if (match.group(2) or "").lower() == "national anthem" else match.group(2) or ""
    aliases = dict.fromkeys(a for a in (plain(value), translation) if a and a != value)
    return Reading(value, None, tuple(aliases))


def place(text: str) -> Reading | None:
    """The name in "Mont Blanc 4,810 m"; the number is the height."""
    match = re.match(rf"([^\d,;()]+?)(?: \(([^()]*)\))? (-?{_DIGITS})(?: ?m\b|$)", text)
    # A description begins with a small letter: "near Raczki Elblaskie", "junction of two rivers".
    if not match or match.group(1)[0].islower():
        return None
    found = short(match.group(1), *([match.group(2)] if match.group(2) else []))
    return found._replace(number=_number(match.group(3))) if found else None


def height(text: str) -> Reading | None:
    """The height in "Mont Blanc 4,810 m"."""
    match = re.match(rf"[^\d;]+? ({_DIGITS}) ?m\b", text)
    return _measured(match.group(1), "m", ("meters",)) if match else None


def independence(text: str) -> Reading | None:
    """The one date of independence from somebody; not the founding of a state that was never ruled by another."""
    text = text.split("notable earlier dates", maxsplit=1)[0]
    dates = _DATE.findall(text)
    if len(dates) != 1 or not re.match(r"\d[^(;]*(\((from|independence|declared)|$)", text):
        return None
    day, month, year = dates[0]
    number = int(year) * 10000 + (MONTHS.index(month) + 1) * 100 + int(day)
    return Reading(f"{day} {month} {year}", float(number), (f"{month} {day}, {year}",))


def holiday(text: str) -> Reading | None:
    """Day and month of a single holiday: "14 July"."""
    days = re.findall(rf"\b(\d{{1,2}}) ({_MONTH})\b", text)
    if len(days) != 1 or ";" in text:
        return None
    return Reading(" ".join(days[0]), None, (f"{days[0][1]} {days[0][0]}",))


def origin(text: str) -> Reading | None:
    """ "France" in "1 August 1960 (from France)"."""
    sources = re.findall(
        r"\(from (?:the )?([A-Z][A-Za-z ]+?)\)", text.split("notable earlier dates", maxsplit=1)[0]
    )
    if len(sources) != 1 or not re.match(r"[^;(]*\(from ", text):
        return None
    found = short(sources[0])
    return found._replace(aliases=same_country(sources[0], found.aliases)) if found else None


def same_country(text: str, aliases: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Every name of the country called `text`, but for `text` itself."""
    country = named(text)
    names = (country.name, *country.aliases) if country else ()
    return tuple(dict.fromkeys(n for n in (*aliases, *names) if n != text))


def currency(text: str) -> Reading | None:
    """ "kyats" in "kyats (MMK) per US dollar -"; the code and the singular are aliases."""
    match = re.match(r"([A-Za-zÀ-ÿ' ]+?) \(([A-Z]{3})\)", text)
    if not match:
        return None
    value = match.group(1).strip()
    singular = value[:-1] if value.endswith("s") and not value.endswith("ss") else ""
    return short(value, singular, match.group(2))


def person(*titles: str) -> Reader:
    """The holder of one of these offices, in ordinary letters: "Emmanuel Macron"; the surname is an alias."""
    pattern = re.compile(
        rf"(?:{'|'.join(titles)}) (?:(?:Dr|Col|Gen)\. )*([^,;(\[]+?) \(since [^()]*\)(?!.*(?:represented by|\(since))"
    )

    def read(text: str) -> Reading | None:
        match = pattern.match(text)
        if not match or not 1 < len(match.group(1).split()) <= 5 or re.search(r"[\"“]| and ", match.group(1)):
            return None
        surname = " ".join(word for word in match.group(1).split() if _is_surname(word))
        return short(ordinary(match.group(1)), ordinary(surname), most_words=5)

    return read


def _is_surname(word: str) -> bool:
    return word.isupper() and not re.fullmatch(r"[IVX]+|[A-Z]\.?", word)


def ordinary(text: str) -> str:
    """Capitals as in running text: "al-BURHAN" → "al-Burhan"; "VI" and single letters stay."""

    def lower(match: re.Match[str]) -> str:
        run = match.group()
        return run if not run.isupper() or re.fullmatch(r"[IVX]+|.", run) else run.capitalize()

    return re.sub(r"[^\W\d_]+", lower, text)


def local_name(text: str) -> Reading | None:
    """ "Knesset" in "Parliament (Knesset)"."""
    match = re.fullmatch(r"[^()]+ \(([^()]+)\)", text.strip())
    # In some entries the two stand the other way round: "Parlement (Parliament)".
    is_english = match is not None and re.search(r"\b(Parliament|National Legislature)\b", match.group(1))
    return short(match.group(1), most_words=3) if match and not is_english else None


def first_listed(text: str) -> Reading | None:
    """The first item of a list in order of size."""
    first = re.split(r",| \(", text, maxsplit=1)[0]
    return short(first, most_words=3) if "," in text and first[:1].islower() else None


def first_partner(text: str) -> Reading | None:
    """The first country of "China 27%, India 11%", if it is clearly the first."""
    shares = partners(text)
    if len(shares) < 2 or shares[0][1] <= shares[1][1]:
        return None
    return Reading(shares[0][0], None, same_country(shares[0][0]))


def partners(text: str) -> list[tuple[str, int]]:
    """Name and per cent of each country in "China 27%, Bahamas, The 11%"."""
    items = re.findall(r"([A-Z][^,%]*(?:, (?:The|Republic of the|Democratic Republic of the))?) (\d+)%", text)
    return [(name.strip(), int(share)) for name, share in items]


def majority(text: str) -> Reading | None:
    """The first group of "Muslim 63.8%, Roman Catholic 20%", if it is more than half and no other is."""
    match = _PERCENT_ITEM.match(text)
    if (
        not match
        or float(match.group(2)) <= 50
        or re.match(r"(other|mixed|unspecified)", match.group(1), re.I)
    ):
        return None
    return short(match.group(1))


def official_language(text: str) -> Reading | None:
    """The only language marked official."""
    marked = re.findall(
        r"(?:^|, )([A-Z][a-zA-Z]+(?: [A-Z][a-zA-Z]+)?)(?: [\d.]+%)? \(official\)",
        text.split("note", maxsplit=1)[0],
    )
    return short(marked[0]) if len(marked) == 1 and text.lower().count("official") == 1 else None


def largest_city(text: str) -> Reading | None:
    """The most populous of several urban areas."""
    items = re.findall(
        rf"({_DIGITS})( million)? ([^,;()\d]+?)(?: \(capital\))?(?: \(\d{{4}}\))?(?:[,;]|$)", text
    )
    sized = [(float(n.replace(",", "")) * (1e6 if million else 1), city) for n, million, city in items]
    if len(sized) < 2 or len({size for size, _ in sized}) < len(sized):
        return None
    found = max(sized)[1]
    return short(ordinary(found))


def former(text: str) -> Reading | None:
    """The first former name; the others are aliases."""
    first, *others = (item.strip() for item in re.sub(r" \([^()]*\)", "", text).split(","))
    return short(first, *others) if not re.search(r"sometimes|formerly|with |;|\d", text) else None


def border(text: str) -> Reading | None:
    """The neighbour with the longest land border, of at least two."""
    lengths = sorted(borders(text), key=lambda item: -item[1])
    if len(lengths) < 2 or lengths[0][1] <= lengths[1][1]:
        return None
    return Reading(lengths[0][0], None, same_country(lengths[0][0]))


def borders(text: str) -> list[tuple[str, float]]:
    """Name and length of each border in "Italy 476 km; Spain 646 km (of which …)"; empty if one is unclear."""
    found = []
    for item in re.split(r"[;,] (?=[A-Z])", re.sub(r" \([^()]*\)", "", text)):
        match = re.match(rf"(.+?) ({_DIGITS}) ?km", item)
        if not match:
            return []
        found.append((match.group(1).strip(), _number(match.group(2))))
    return found


def quantity(unit: str, *spelled: str) -> Reader:
    """A figure with its unit at the start of the text: "274,200 sq km"."""
    pattern = re.compile(rf"({_DIGITS}) {unit}(?![a-z])")

    def read(text: str) -> Reading | None:
        match = pattern.match(text)
        return _measured(match.group(1), unit, spelled) if match else None

    return read


def rate(unit: str, *spelled: str) -> Reader:
    """Like `quantity`, where the figure alone is the answer: "14.7" of "14.7 births/1,000 population"."""
    measured = quantity(unit, *spelled)

    def read(text: str) -> Reading | None:
        found = measured(text)
        return found and Reading(found.aliases[0], found.number, (found.value, *found.aliases[1:]))

    return read


def count(text: str) -> Reading | None:
    """A whole number that stands alone or before a remark."""
    match = re.match(r"(\d{1,3}(?:,\d{3})*)(?=\s*(?:\(|$|;))", text)
    return Reading(match.group(1), _number(match.group(1))) if match else None


def percent(text: str) -> Reading | None:
    """ "81.9%"."""
    match = re.match(r"(\d+(?:\.\d+)?)%", text)
    return Reading(match.group(0), _number(match.group(1)), (f"{match.group(1)} percent",)) if match else None


def figure(text: str) -> Reading | None:
    """A decimal figure without a unit, such as a Gini index."""
    match = re.match(r"(\d+(?:\.\d+)?)(?=\s|$)", text)
    return Reading(match.group(1), _number(match.group(1))) if match else None


def money(text: str) -> Reading | None:
    """ "$2.241 trillion" or "$6,200"."""
    match = re.match(rf"\$({_DIGITS})(?: (million|billion|trillion))?(?=\s|$)", text)
    if not match:
        return None
    return Reading(match.group(0), _number(match.group(1)) * _SCALE.get(match.group(2) or "", 1.0))


def _measured(digits: str, unit: str, spelled: tuple[str, ...]) -> Reading | None:
    number = _number(digits)
    if number <= 0:
        return None
    return Reading(f"{digits} {unit}", number, (digits, *(f"{digits} {word}" for word in spelled)))


def _number(digits: str) -> float:
    return float(digits.replace(",", ""))
