"""Texts of Factbook fields and the values that are read from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.datasets.factbook_questions import readings
from sleuth.datasets.factbook_questions.attributes import ATTRIBUTES
from sleuth.datasets.factbook_questions.facts import countries, fact
from sleuth.datasets.factbook_questions.readings import official_languages, waters
from sleuth.text import contains

READ = [
    (readings.capital, "Ouagadougou", "Ouagadougou"),
    (readings.capital, "Santiago; note - Valparaiso is the seat of the national legislature", "Santiago"),
    (readings.capital, "Pretoria (administrative capital); Cape Town (legislative capital)", None),
    (ATTRIBUTES["internet country code"].read, ".bf", ".bf"),
    (readings.quoted, '"A" and "B"', None),
    (readings.place, "Golem Korab (Maja e Korabit) 2,764 m", "Golem Korab"),
    (readings.place, "unnamed elevation 675 m; located 2.5 km southeast of the town", None),
    (readings.place, "K2 (Mt. Godwin-Austen) 8,611 m", None),
    (readings.height, "Tena Kourou 749 m", "749 m"),
    (readings.independence, "4 April 1960 (from France); 20 August 1960 (full independence)", None),
    (readings.independence, "1 October 1949 (People's Republic of China established)", None),
    (readings.independence, "21 September 1991 (from the Soviet Union); notable earlier dates: 321 B.C. (Kingdom)", "21 September 1991"),
    (readings.origin, "21 September 1991 (from the Soviet Union); notable earlier dates: x (from Rome)", "Soviet Union"),
    (readings.holiday, "Independence Day, 28 November (1912), also known as Flag Day", "28 November"),
    (readings.single, "white stallion", "white stallion"),
    (readings.single, "Lao or Laotian", None),
    (readings.currency, "baht per US dollar -", None),
    (readings.name, "presidential republic; authoritarian", "presidential republic"),
    (readings.person("King"), "King CHARLES III (since 8 September 2022); represented by Governor General X (since 2021)", None),
    (readings.person("Prime Minister"), "Prime Minister Dr. Terrance DREW (since 6 August 2022)", "Terrance Drew"),
    (readings.person("President"), "Prime Minister Keir STARMER (since 5 July 2024)", None),
    (readings.local_name, "Parliament (Knesset)", "Knesset"),
    (readings.local_name, "Parlement (Parliament)", None),
    (readings.first_listed, "gold, oil seeds, uranium and thorium ore (2023)", "gold"),
    (readings.first_partner, "USA 51%, China 11%, Mexico 6% (2023)", "USA"),
    (readings.majority, "Muslim 63.8%, Roman Catholic 20.1%", "Muslim"),
    (readings.majority, "Protestant 46.5%, Roman Catholic 20.8%", None),
    (readings.official_language, "French (official), Wolof, Pulaar", "French"),
    (readings.official_language, "English (official), Kiswahili (official)", None),
    (readings.largest_city, "4.421 million Tel Aviv-Yafo, 1.174 million Haifa, 970,000 JERUSALEM (capital) (2023)", "Tel Aviv-Yafo"),
    (readings.former, "Upper Volta, Republic of Upper Volta", "Upper Volta"),
    (readings.border, "Nicaragua 313 km; Panama 348 km", "Panama"),
    (readings.quantity("sq km"), "443 sq km (Antigua 280 sq km; Barbuda 161 sq km)", "443 sq km"),
    (readings.quantity("km"), "0 km (landlocked)", None),
    (readings.rate("births/1,000 population"), "35.91 births/1,000 population (2025 est.)", "35.91"),
    (readings.count, "10,093,593 (2025 est.)", "10,093,593"),
    (readings.count, "12.5 million", None),
    (readings.percent, "81.9% of total population (2023)", "81.9%"),
    (readings.percent, "-0.37% (2025 est.)", None),
    (readings.index, "34.4 (2021 est.)", "34.4"),
]  # fmt: skip


@pytest.mark.parametrize(("read", "text", "value"), READ, ids=[f"{r[1][:40]}" for r in READ])
def test_reading(read: readings.Reader, text: str, value: str | None):
    found = read(text)
    assert (found.value if found else None) == value
    assert value is None or contains(text, value)


RATE = "35.91 births/1,000 people"


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (readings.money, "$2.241 trillion", ("$2.241 trillion", 2.241e12, ())),
        (readings.independence, "5 August 1960 (from France)", ("5 August 1960", 19600805, ("August 5, 1960",))),
        (readings.quantity("km", "kilometers"), "9,200 km", ("9,200 km", 9200, ("9,200", "9,200 kilometers"))),
        (readings.rate("births/1,000 people"), RATE, ("35.91", 35.91, (RATE,))),
        (readings.place, "Kilimanjaro (highest point in Africa) 5,895 m", ("Kilimanjaro", None, ())),
        (readings.capital, "San José", ("San José", None, ("San Jose",))),
        (readings.person("President"), "President Emmanuel MACRON (since 2017)", ("Emmanuel Macron", None, ("Macron",))),
        (readings.currency, "kyats (MMK) per US dollar -", ("kyats", None, ("kyat", "MMK"))),
        (readings.quoted, '"Le Ditanye" (Anthem of Victory)', ("Le Ditanye", None, ("Anthem of Victory",))),
    ],
)  # fmt: skip
def test_numbers_and_aliases(read: readings.Reader, text: str, expected: tuple[object, ...]):
    assert read(text) == expected


def test_partners_accept_other_names_of_the_country():
    partner = fact(next(c for c in countries() if c.name == "Canada"), "main export partner")
    assert partner is not None
    assert partner.value == "USA"
    assert "United States" in partner.aliases


def test_lists():
    assert readings.partners("Bahamas, The 12%, China 3% (2023)") == [("Bahamas, The", 12), ("China", 3)]
    lengths = readings.borders("Poland 100 km, Russia (Kaliningrad Oblast) 209 km")
    assert lengths == [("Poland", 100.0), ("Russia", 209.0)]
    assert readings.borders("Poland, unclear") == []
    text = "bordering the Gulf of Oman, the Persian Gulf, and the Caspian Sea, between Iraq and Pakistan"
    assert waters(text) == ["Gulf of Oman", "Persian Gulf", "Caspian Sea"]
    assert waters("Southern Asia, between China and India") == []
    assert official_languages("French (official), Arabic (official), Sara 5%") == ["French", "Arabic"]
    assert readings.ordinary("al-BURHAN VI J. O'NEILL MACRON") == "al-Burhan VI J. O'Neill Macron"


READERS = list(dict.fromkeys(read for read, _, _ in READ))


@given(st.text(alphabet='A Bc1,.;()%-"$ km(official)', max_size=40))
def test_readers_take_any_text(text: str):
    for read in READERS:
        found = read(text)
        if found is not None:
            assert found.value.strip() == found.value
            assert found.value not in found.aliases
