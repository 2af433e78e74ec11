"""Gold paragraphs → the searches a person would make, one Hop each, in reasoning order.

Used for scripted demonstrations and for measuring searches, never for scoring answers. A query has
only words that are known by then: from the question, and from the passages found before. These are
heuristics, not annotation; `docs/data.md` gives their quality.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from sleuth.text import normalise
from sleuth.types import Hop, Passage, Question

_MULTI_HOP = ("bridge", "comparison", "compositional", "inference", "bridge_comparison")
_FILLERS = """
a an and are as at be been being but by can could did do does for from had has have he her his how if in into is it
its many much name no not of on one or other she than that the their them then there these they this those to was
were what when where which who whom whose why will with would
"""
_STOP_WORDS = frozenset(_FILLERS.split())
_MOST_QUERY_WORDS = 10
_MOST_NEED_WORDS = 14
_BE = "is|was|are|were"
_AUXILIARY = f"{_BE}|did|does|do|has|had|have|can|could|will|would"
# "what is the date of birth …", "how many seats …", and "which 1831 novel …" up to its verb or preposition.
_ATTRIBUTE = re.compile(
    rf"\b(?:what|which) (?:{_BE}) the (\w+ of (?:birth|death|origin|citizenship))\b", re.I
)
_COUNTED = re.compile(rf"\bhow many ((?:[\w-]+ ){{0,2}}?[\w-]+)(?= (?:{_AUXILIARY})\b|$)", re.I)
_KIND = re.compile(
    rf"\b(?:what|(?<!of )which) (?:(?:{_BE}) (?:the|an?) )?((?!(?:{_AUXILIARY})\b)(?:[\w'’-]+ ){{0,4}}?[\w'’-]+)"
    rf"(?= (?:{_AUXILIARY}|of|in|on|at|for|from|to|by|with|as|through|that|who|which|whose|where|when)\b"
    r"| \w+ed\b| \w+s (?:the|an?|his|her|its|through|into|in|on|at|to|by|from|as|near)\b|,|$)",
    re.I,
)
_VERBS = frozenset(("follows", "owns", "crosses", "shares border with"))
_SEARCH_TERMS = {
    "located in the administrative territorial entity": "administrative area",
    "contains administrative territorial entity": "administrative areas",
    "located in or next to body of water": "body of water",
    "mouth of the watercourse": "mouth",
    "member of sports team": "sports team",
    "member of political party": "political party",
    "licensed to broadcast to": "broadcast area",
    "applies to jurisdiction": "jurisdiction",
    "educated at": "school",
    "instance of": "kind",
}
"""Name of a Wikidata property → search terms, where nobody would type the name."""
_FIXED = {"when": "the date", "where": "the place", "why": "the reason"}
_FIXED |= dict.fromkeys(("who", "whose", "whom"), "the person")


def derived_hops(question: Question) -> tuple[Hop, ...]:
    """Hops from the gold paragraphs and the kind of question; () if the kind is unknown."""
    by_id = {passage.id: passage for passage in question.passages}
    golds = [by_id[gold] for gold in question.gold_ids if gold in by_id]
    is_multi_hop = question.kind in _MULTI_HOP
    if not question.answers or len(golds) != len(question.gold_ids) or len(golds) != 1 + is_multi_hop:
        return ()
    if not is_multi_hop:
        words = question.text
        return (Hop(words.rstrip("? "), golds[0].id, question.answers[0], need_of(words)),)
    if question.kind == "comparison":
        return comparison_hops(question.text, golds)
    return bridge_hops(question.text, question.answers[0], golds)


def comparison_hops(question: str, golds: Sequence[Passage]) -> tuple[Hop, ...]:
    """One search for each thing compared, in the question's order."""
    places = {gold.id: normalise(question).find(normalise(_bare(gold.title))) for gold in golds}
    ordered = sorted(golds, key=lambda gold: (places[gold.id] < 0, places[gold.id]))
    return tuple(Hop(gold.title, gold.id, _bare(gold.title), _bare(gold.title)) for gold in ordered)


def bridge_hops(question: str, answer: str, golds: Sequence[Passage]) -> tuple[Hop, ...]:
    """Two searches: what the question describes, then what that leads to."""
    first, last = _ordered(question, answer, golds)
    first_name, last_name = _bare(first.title), _bare(last.title)
    is_named = _names(question, first_name)
    is_last_named = _names(question, last_name)
    is_linked = is_last_named or _names(first.text, last_name) or _holds(first.text, _surname(last_name))
    query = words_about(question, first, without=last_name if is_last_named else "")
    # Nobody can type a title that no passage has shown yet: the first find is in the query instead.
    onward = last_name if is_linked else words_about(question, last, lead="" if is_named else first_name)
    found = first_name if not is_linked and not is_named else last_name
    # If the last article is the answer itself, its search only confirms what the first one states.
    is_answer = normalise(last_name) == normalise(answer)
    asked = last_name if is_answer else asked_for(question, last_name if is_linked else first_name)
    return (
        Hop(query or first_name, first.id, found, first_name if is_named else _described(question)),
        Hop(onward or last_name, last.id, answer, asked),
    )


def evidence_hops(evidences: Iterable[Sequence[str]], golds: Sequence[Passage]) -> tuple[Hop, ...]:
    """One hop for each triple (subject, relation, object) whose subject has a gold paragraph (2Wiki).

    () unless every gold paragraph gets one: half a chain would demonstrate a wrong search.
    """
    triples = list(dict.fromkeys((s.strip(), r.strip(), o.strip()) for s, r, o in evidences))
    found = _by_subject([subject for subject, _, _ in triples], golds)
    hops: dict[tuple[str, str], Hop] = {}
    for (subject, relation, value), gold in zip(triples, found, strict=True):
        if gold is None:
            return ()
        hops.setdefault((gold.id, relation), _relation_hop(subject, relation, gold.id, value))
    is_whole = {hop.passage_id for hop in hops.values()} == {gold.id for gold in golds}
    return tuple(hops.values()) if is_whole else ()


def decomposition_hops(steps: Sequence[tuple[str, str, str]]) -> tuple[Hop, ...]:
    """Hops of (sub-question, passage id, answer) steps (MuSiQue); "#1" refers to the first step's answer."""
    hops: list[Hop] = []
    answers = [answer for _, _, answer in steps]
    for i, (step, passage_id, answer) in enumerate(steps):
        for number in range(i, 0, -1):
            step = step.replace(f"#{number}", answers[number - 1])
        subject, is_relation, relation = step.strip().partition(">>")
        if is_relation:
            hops.append(_relation_hop(subject.strip(), relation.strip(), passage_id, answer))
        else:
            hops.append(Hop(subject.rstrip("? "), passage_id, answer, need_of(subject, answers[:i])))
    return tuple(hops)


def words_about(question: str, passage: Passage, *, lead: str = "", without: str = "") -> str:
    """Query of `lead` and the question's words that occur in the passage; at most ten words, names preferred."""
    there = {*_padded(passage.title).split(), *_padded(passage.text).split()}
    led = set(normalise(f"{lead} {without}").split())
    chosen: dict[str, str] = {}
    for word in question.split():
        bare = re.sub(r"['’]s$", "", word.strip("?.,;:!\"'()“”‘’"))
        key = normalise(bare)
        if key and key not in _STOP_WORDS and key not in led and all(part in there for part in key.split()):
            chosen.setdefault(key, bare)
    room = _MOST_QUERY_WORDS - len(lead.split())
    ranked = sorted(chosen, key=lambda key: not re.search(r"[A-Z\d]", chosen[key]))[: max(room, 0)]
    return " ".join([lead, *(chosen[key] for key in chosen if key in ranked)]).strip()


def need_of(question: str, subjects: Sequence[str] = ()) -> str:
    """Noun phrase or clause that completes "I need to find …".

    `subjects` are names that occur in the question, around which "did X win" becomes "X did win".
    """
    text = " ".join(question.split()).rstrip("?. ")
    if found := re.match(rf"(?:what|who|which) (?:{_BE}) ((?:the|an?) .+)", text, re.IGNORECASE):
        return _shortened(found[1])
    if re.match(
        rf"(?:who|what|which(?: \w+)?|how many(?: \w+)?) (?!(?:{_AUXILIARY})\b)\w", text, re.IGNORECASE
    ):
        return _shortened(text[0].lower() + text[1:])
    for subject in subjects:
        pattern = rf"(\w[\w ]*?) ({_AUXILIARY}) ((?:the )?{re.escape(subject)}) (\w.*)"
        if subject and (turned := re.fullmatch(pattern, text, re.IGNORECASE)):
            return _shortened(f"{turned[1].lower()} {turned[3]} {turned[2].lower()} {turned[4]}")
    return f"the answer to “{text}”"


def asked_for(question: str, name: str) -> str:
    """Phrase for what a question asks about `name`: "the date of birth of X", "the number of seats for X"."""
    text = " ".join(question.split()).rstrip("?. ")
    if found := _ATTRIBUTE.search(text) or _KIND.search(text):
        return f"the {found[1]} of {name}"
    if found := _COUNTED.search(text):
        return f"the number of {found[1]} for {name}"
    # A question word at either end is what the question asks; inside the sentence it rarely is.
    word = f"({'|'.join(_FIXED)})"
    asked = (
        re.match(rf"{word}\b", text, re.I)
        or re.search(rf"\b{word}$", text, re.I)
        or re.search(rf"\b{word}\b", text, re.I)
    )
    return f"{_FIXED[asked[1].lower()] if asked else 'the answer'} for {name}"


def _by_subject(subjects: Sequence[str], golds: Sequence[Passage]) -> list[Passage | None]:
    by_title: dict[str, Passage] = {}
    for gold in golds:
        by_title.setdefault(normalise(gold.title), gold)
        by_title.setdefault(normalise(_bare(gold.title)), gold)
    found = [by_title.get(normalise(s)) or by_title.get(normalise(_bare(s))) for s in subjects]
    # Wikidata's name may differ from the article's: the last subject and the last paragraph belong together.
    spare = [gold for gold in golds if gold not in found]
    nameless = {s for s, gold in zip(subjects, found, strict=True) if gold is None}
    if len(spare) == 1 and len(nameless) == 1:
        return [gold or spare[0] for gold in found]
    return found


def _relation_hop(subject: str, relation: str, passage_id: str, value: str) -> Hop:
    relation = _SEARCH_TERMS.get(relation, relation)
    need = f"the {relation} of {subject}"
    if relation.endswith((" of", " by", " in", " after")):
        need = f"what {subject} is {relation}"
    elif relation in _VERBS:
        need = f"what {subject} {relation}"
    return Hop(f"{subject} {relation}", passage_id, value, need)


def _ordered(question: str, answer: str, golds: Sequence[Passage]) -> tuple[Passage, Passage]:
    """The paragraph to find first, then the other; the given order if no sign distinguishes them."""
    one, two = golds
    names = _bare(one.title), _bare(two.title)
    signs = (
        (normalise(two.title) == normalise(answer)) - (normalise(one.title) == normalise(answer)),
        _holds(f"{two.title} | {two.text}", answer) - _holds(f"{one.title} | {one.text}", answer),
        _names(question, names[0]) - _names(question, names[1]),
        _names(one.text, names[1]) - _names(two.text, names[0]),
    )
    lead = next((sign for sign in signs if sign), 0)
    if not lead:
        lead = len(words_about(question, one)) - len(words_about(question, two))
    return (one, two) if lead >= 0 else (two, one)


def _described(question: str) -> str:
    """Noun phrase that describes something the question does not name; "" if there is none."""
    clause = r"(?:whose|who|that|which|where|in which|of which|for which)"
    found = re.search(rf"\b(the|an?) ((?:[\w'’-]+ ){{1,4}}?{clause} [^,?]+)", question, re.IGNORECASE)
    return _shortened(f"the {found[2]}") if found else ""


def _names(text: str, name: str) -> bool:
    """Whether a text contains a name, possessives such as "Odo Verrin's" included."""
    return _holds(text, name) or _holds(_without_possessives(text), name)


def _holds(text: str, name: str) -> bool:
    """`sleuth.text.contains` with cached normalisation, since a chain checks one paragraph six times."""
    wanted = _padded(name)
    return wanted.strip() not in ("", "yes", "no") and wanted in _padded(text)


@lru_cache(maxsize=64)
def _without_possessives(text: str) -> str:
    return re.sub(r"['’]s\b", "", text)


@lru_cache(maxsize=64)
def _padded(text: str) -> str:
    return f" {normalise(text)} "


def _surname(name: str) -> str:
    """Last word of a longer name: articles write "James Arthur Lovell" where the title is "Jim Lovell"."""
    words = name.split()
    return words[-1] if len(words) > 1 and len(words[-1]) > 3 and words[-1][0].isupper() else ""


def _bare(title: str) -> str:
    """Title without its disambiguation: "Get Low" of "Get Low (song)"."""
    return re.sub(r"\s*\([^()]*\)\s*$", "", title) or title


def _shortened(phrase: str) -> str:
    return " ".join(phrase.split()[:_MOST_NEED_WORDS])
