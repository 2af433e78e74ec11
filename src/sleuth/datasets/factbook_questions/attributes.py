"""What questions ask about: one row for each attribute, with its place in the Factbook and its wordings.

{} stands for the country throughout; it comes last in a wording wherever English allows, because
what fills it may be half a sentence long ("the country whose capital is …").
"""

from __future__ import annotations

from dataclasses import dataclass

from sleuth.datasets.factbook_questions import readings
from sleuth.datasets.factbook_questions.readings import Reader

YEAR = r"20\d\d"
"""Sub-fields named by year, the latest first."""


@dataclass(frozen=True)
class Attribute:
    """One attribute."""

    noun: str
    """Its name, which also stands in sentences: "the highest point of Peru"."""
    field: str
    part: str
    """Pattern of the sub-field's whole name; "" is the field's own text."""
    read: Reader
    search: str
    """What is typed behind the country's name to find the passage."""
    ask: tuple[str, ...]
    """Wordings of the question; none if it serves as a clue only."""
    need: str
    """What is looked for, as a noun phrase."""

    @property
    def slug(self) -> str:
        """For ids."""
        return slug(self.noun)

    @property
    def longest(self) -> int:
        """Most words of the passage. BM25 ranks a list of many neighbors behind the lists of each of them."""
        return 30 if self.field == "Land boundaries" else 60


def slug(noun: str) -> str:
    """A noun as part of an id."""
    return noun.replace("'", "").replace(" ", "-").lower()


def _row(
    noun: str,
    place: str,
    read: Reader,
    search: str = "",
    ask: tuple[str, ...] | str | None = None,
    need: str = "",
) -> Attribute:
    """A row; `place` is "field" or "field > sub-field", and what is left out follows from the noun."""
    field, _, part = place.partition(" > ")
    wordings = (f"What is the {noun} of {{}}?",) if ask is None else (ask,) if isinstance(ask, str) else ask
    return Attribute(noun, field, part, read, search or noun, wordings, need or f"the {noun} of {{}}")


NAMES = (
    _row("capital", "Capital > name", readings.capital, "capital name coordinates",
         ("What is the capital of {}?", "Which city is the capital of {}?")),
    _row("internet country code", "Internet country code", readings.internet_code),
    _row("national anthem", "National anthem(s) > title", readings.quoted, "national anthem title",
         "What is the title of the national anthem of {}?"),
    _row("highest point", "Elevation > highest point", readings.place),
    _row("lowest point", "Elevation > lowest point", readings.place),
    _row("date of independence", "Independence", readings.independence, "independence",
         ("When did {} become independent?", "What is the date of independence of {}?")),
    _row("former ruler", "Independence", readings.origin, "independence",
         "From which country did {} gain independence?", "the country from which {} gained independence"),
    _row("national symbol", "National symbol(s)", readings.single),
    _row("currency", "Exchange rates > Currency", readings.currency, "currency exchange rate",
         ("What is the currency of {}?", "Which currency is used in {}?")),
    _row("government type", "Government type", readings.name, "government type",
         ("What is the government type of {}?", "What type of government is there in {}?")),
    _row("nationality adjective", "Nationality > adjective", readings.single, "nationality adjective",
         "Which adjective describes the nationality of people from {}?"),
    _row("aircraft registration prefix", "Civil aircraft registration country code prefix", readings.prefix,
         "civil aircraft registration prefix"),
    # Asked for by country, the long passages of other fields rank before; by the name it is found at once.
    _row("head of state", "Executive branch > chief of state", readings.person(*readings.HEADS), "chief of state", ()),
    _row("prime minister", "Executive branch > head of government", readings.person("Prime Minister"),
         "prime minister head of government", "Who is the prime minister of {}?"),
    _row("local name of the legislature", "Legislative branch > legislature name", readings.local_name,
         "legislative branch"),
    _row("main export partner", "Exports - partners", readings.first_partner, "exports partners",
         ("What is the main export partner of {}?", "Which country takes the largest share of the exports of {}?")),
    _row("main import partner", "Imports - partners", readings.first_partner, "imports partners",
         ("What is the main import partner of {}?", "Which country supplies the largest share of the imports of {}?")),
    _row("main export commodity", "Exports - commodities", readings.first_listed, "exports commodities"),
    _row("main agricultural product", "Agricultural products", readings.first_listed, "agricultural products",
         "What is the main agricultural product, by weight, of {}?"),
    _row("largest religious group", "Religions", readings.majority, "religions",
         "What is the largest religious group in {}?", "the largest religious group in {}"),
    _row("largest ethnic group", "Ethnic groups", readings.majority, "ethnic groups",
         "What is the largest ethnic group in {}?", "the largest ethnic group in {}"),
    _row("official language", "Languages > (Languages)?", readings.official_language, "languages"),
    _row("most populous city", "Major urban areas - population", readings.largest_city, "major urban areas"),
    _row("national holiday", "National holiday", readings.holiday, "national holiday",
         "On what day is the national holiday of {}?", "the date of the national holiday of {}"),
    _row("former name", "Country name > former", readings.former, "country name former"),
    _row("local short name", "Country name > local short form", readings.single, "local short form"),
    _row("neighbor with the longest border", "Land boundaries > border countries", readings.border, "land boundaries",
         "Which country shares the longest land border with {}?",
         "the country with which {} shares its longest land border"),
)  # fmt: skip
"""Attributes whose value is a name or a date."""

FIGURES = (
    _row("total area", "Area > total", readings.quantity("sq km", "square kilometers"), "area total land water"),
    _row("coastline", "Coastline", readings.quantity("km", "kilometers"), "coastline length",
         "How long is the coastline of {}?", "the length of the coastline of {}"),
    _row("land border", "Land boundaries > total", readings.quantity("km", "kilometers"), "land boundaries",
         "What is the total length of the land borders of {}?", "the total length of the land borders of {}"),
    _row("population", "Population > total", readings.count, "population total",
         ("What is the population of {}?", "How many people live in {}?")),
    _row("median age", "Median age > total", readings.quantity("years")),
    _row("life expectancy", "Life expectancy at birth > total population", readings.quantity("years"),
         "life expectancy at birth", "What is the life expectancy at birth in {}?", "the life expectancy at birth in {}"),
    _row("number of airports", "Airports", readings.count, "airports",
         "How many airports are there in {}?", "the number of airports in {}"),
    _row("population growth rate", "Population growth rate", readings.percent),
    _row("mean elevation", "Elevation > mean elevation", readings.quantity("m", "meters")),
    _row("height of the highest point", "Elevation > highest point", readings.height, "highest point",
         "How high is the highest point of {}?"),
    _row("urban population", "Urbanization > urban population", readings.percent, "urbanization urban population",
         "What share of the population is urban in {}?", "the share of urban population in {}"),
    _row("total fertility rate", "Total fertility rate", readings.rate("children born/woman", "children")),
    _row("birth rate", "Birth rate", readings.rate("births/1,000 population"), "birth rate",
         ("What is the birth rate of {}?", "How many births are there per 1,000 people in {}?")),
    _row("death rate", "Death rate", readings.rate("deaths/1,000 population"), "death rate",
         ("What is the death rate of {}?", "How many deaths are there per 1,000 people in {}?")),
    _row("GDP at the official exchange rate", "GDP (official exchange rate)", readings.money,
         "GDP official exchange rate"),
    _row("real GDP per capita", f"Real GDP per capita > {YEAR}", readings.money),
    _row("share of internet users", "Internet users > percent of population", readings.percent, "internet users",
         "What percentage of people use the internet in {}?", "the share of internet users in {}"),
    _row("share of forest", "Land use > forest", readings.percent, "land use forest",
         "What share of the land is forest in {}?", "the share of forest in {}"),
    _row("unemployment rate", f"Unemployment rate > {YEAR}", readings.percent),
    _row("number of World Heritage Sites", "National heritage > total World Heritage Sites", readings.count,
         "national heritage", "How many World Heritage Sites are there in {}?", "the number of World Heritage Sites in {}"),
    _row("length of railways", "Railways > total", readings.quantity("km", "kilometers"), "railways",
         "How long is the railway network of {}?"),
    _row("merchant marine", "Merchant marine > total", readings.count, "merchant marine total ships",
         "How many ships are there in the merchant marine of {}?", "the size of the merchant marine of {}"),
    _row("number of ports", "Ports > total ports", readings.count, "total ports",
         "How many ports are there in {}?", "the number of ports in {}"),
    _row("number of heliports", "Heliports", readings.count, "heliports",
         "How many heliports are there in {}?", "the number of heliports in {}"),
)  # fmt: skip
"""Attributes whose value is a figure that nearly every country has; where it is missing, it may be zero."""

SPARSE = (
    _row("literacy rate", "Literacy > total population", readings.percent, "literacy"),
    _row("Gini index", f"Gini Index coefficient - distribution of family income > {YEAR}", readings.figure,
         "Gini index coefficient"),
    _row("poverty rate", "Population below poverty line", readings.percent, "population below poverty line",
         "What share of people live below the poverty line in {}?", "the poverty rate of {}"),
    _row("hospital bed density", "Hospital bed density", readings.rate("beds/1,000 population"), "hospital bed density",
         ("What is the hospital bed density of {}?", "How many hospital beds are there per 1,000 people in {}?")),
    _row("mothers' mean age at first birth", "Mother's mean age at first birth", readings.quantity("years"),
         "mother's mean age at first birth", "What is the mothers' mean age at first birth in {}?",
         "the mothers' mean age at first birth in {}"),
    _row("rate of tobacco use", "Tobacco use > total", readings.percent, "tobacco use",
         ("What is the rate of tobacco use in {}?", "What share of people use tobacco in {}?"),
         "the rate of tobacco use in {}"),
    _row("share of underweight children", "Children under the age of 5 years underweight", readings.percent,
         "children under the age of 5 underweight", "What share of children under five are underweight in {}?",
         "the share of underweight children in {}"),
    _row("military spending", f"Military expenditures > {YEAR}", readings.percent, "military expenditures",
         "What share of GDP is spent on the military in {}?", "the military spending of {}"),
    _row("alcohol consumption per capita", "Alcohol consumption per capita > total",
         readings.rate("liters of pure alcohol", "liters"), "alcohol consumption per capita",
         "How many liters of pure alcohol are consumed per capita in {}?", "the alcohol consumption per capita in {}"),
    _row("school life expectancy", "School life expectancy (primary to tertiary education) > total",
         readings.quantity("years"), "school life expectancy"),
    _row("external debt", f"Debt - external > {YEAR}", readings.money, "debt external"),
    _row("share of household spending on food", "Average household expenditures > on food", readings.percent,
         "average household expenditures on food", "What share of household spending goes to food in {}?",
         "the share of household spending on food in {}"),
    _row("tax revenue", "Taxes and other revenues", readings.percent, "taxes and other revenues",
         "What is the tax revenue, as a share of GDP, of {}?", "the tax revenue of {}"),
    _row("income share of the richest tenth", "Household income or consumption by percentage share > highest 10%",
         readings.percent, "household income by percentage share highest",
         "What share of income goes to the richest tenth of households in {}?",
         "the income share of the richest tenth in {}"),
)  # fmt: skip
"""Statistics that the Factbook gives for some countries only: unanswerable questions ask for those it does not.

No country has none of them, so that a missing one cannot be answered with zero.
"""

ATTRIBUTES = {attribute.noun: attribute for attribute in (*NAMES, *FIGURES, *SPARSE)}
"""Noun → attribute."""

ASKED = tuple(attribute for attribute in ATTRIBUTES.values() if attribute.ask)
"""Attributes that questions ask for."""
