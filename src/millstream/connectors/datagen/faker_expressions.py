"""Expressions of the faker connector: `#{Name.firstName}`, `#{number.numberBetween '1','10'}`, `#{regexify '(a|b)'}`.

Promises: the expressions of datafaker that tutorials use, in any case and with or without underscores; other methods of
the package Faker by their name. The same seed gives the same text. Faker is imported only if an expression needs it.
Does not know: columns."""

from __future__ import annotations

import functools
import importlib
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

from millstream.connectors.datagen.faker_words import PRODUCTS, WORDS
from millstream.connectors.datagen.regexify import compile_pattern
from millstream.connectors.datagen.seeded import SeededRandom
from millstream.errors import UserError

Draw = Callable[[SeededRandom], str]

_CALL = re.compile(r"#\{\s*([A-Za-z_][\w.]*)\s*((?:'(?:[^']|'')*'\s*,?\s*)*)\}", re.DOTALL)
_ARGUMENT = re.compile(r"'((?:[^']|'')*)'")
_TIME_METHODS = ("date.past", "date.future", "timeanddate.past", "timeanddate.future", "time.past", "time.future")
_MILLIS = {
    "MILLISECONDS": 1, "SECONDS": 1000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000,
}  # fmt: skip
# datafaker's methods, and the methods of Faker that return the same
_FAKER_METHODS = {
    "address.buildingnumber": "building_number", "address.city": "city", "address.cityname": "city",
    "address.country": "country", "address.countrycode": "country_code", "address.fulladdress": "address",
    "address.latitude": "latitude", "address.longitude": "longitude", "address.postcode": "postcode",
    "address.state": "state", "address.stateabbr": "state_abbr", "address.streetaddress": "street_address",
    "address.streetname": "street_name", "address.timezone": "timezone", "address.zipcode": "postcode",
    "bool.bool": "boolean", "code.isbn10": "isbn10", "code.isbn13": "isbn13", "color.hex": "hex_color",
    "color.name": "color_name", "commerce.color": "color_name", "company.bs": "bs",
    "company.catchphrase": "catch_phrase", "company.industry": "bs", "company.name": "company",
    "company.profession": "job", "company.suffix": "company_suffix", "company.url": "url",
    "country.countrycode2": "country_code", "country.name": "country", "currency.code": "currency_code",
    "currency.name": "currency_name", "file.extension": "file_extension", "file.filename": "file_name",
    "file.mimetype": "mime_type", "finance.bic": "swift", "finance.creditcard": "credit_card_number",
    "finance.iban": "iban", "idnumber.valid": "ssn", "internet.domainname": "domain_name",
    "internet.emailaddress": "email", "internet.httpmethod": "http_method", "internet.image": "image_url",
    "internet.ipv4address": "ipv4", "internet.ipv6address": "ipv6", "internet.macaddress": "mac_address",
    "internet.password": "password", "internet.privateipv4address": "ipv4_private",
    "internet.publicipv4address": "ipv4_public", "internet.safeemailaddress": "safe_email", "internet.slug": "slug",
    "internet.url": "url", "internet.username": "user_name", "internet.useragent": "user_agent",
    "internet.useragentany": "user_agent", "internet.uuid": "uuid4", "job.title": "job", "lorem.paragraph": "paragraph",
    "lorem.sentence": "sentence", "lorem.word": "word", "name.firstname": "first_name", "name.fullname": "name",
    "name.lastname": "last_name", "name.name": "name", "name.prefix": "prefix", "name.suffix": "suffix",
    "name.title": "job", "name.username": "user_name", "phonenumber.cellphone": "phone_number",
    "phonenumber.phonenumber": "phone_number",
}  # fmt: skip
_lock = threading.Lock()  # Faker's generator of random numbers is shared by all threads of the process


class InvalidExpression(UserError):
    """An expression that cannot be evaluated."""


class MissingFaker(UserError):
    """Faker is not installed."""

    hint = "pip install 'millstream[faker]'"

    def __init__(self, problem: ImportError) -> None:
        super().__init__(f"this expression needs the package Faker, which cannot be imported: {problem}")


@functools.lru_cache(maxsize=1)
def _faker() -> Any:
    try:
        package = importlib.import_module("faker")
    except ImportError as problem:
        raise MissingFaker(problem) from problem
    return package.Factory.create()


@functools.lru_cache(maxsize=1000)
def compile_expression(text: str) -> Draw:
    """Return a function that draws a text: calls in #{...} are replaced by their values, other text stays.

    Raises:
        InvalidExpression: If a call is unknown, or has wrong arguments.

    """
    parts: list[Draw] = []
    end = 0
    for match in _CALL.finditer(text):
        _check_literal(text, text[end : match.start()])
        parts += [_constant(text[end : match.start()]), _compile_call(text, match[1], _arguments(match[2]))]
        end = match.end()
    _check_literal(text, text[end:])
    parts.append(_constant(text[end:]))

    def draw(rng: SeededRandom) -> str:
        with _lock:
            return "".join([part(rng) for part in parts])

    return draw


def relative_time_range(text: str) -> tuple[int, int] | None:
    """Return the limits of date.past or date.future in milliseconds from now; None for other expressions."""
    match = _CALL.fullmatch(text.strip())
    if match is None or _normalize(match[1]) not in _TIME_METHODS:
        return None
    *amounts, unit = _arguments(match[2]) or ("",)
    factor = _MILLIS.get(unit.upper())
    numbers = [int(amount) for amount in amounts if amount.lstrip("-").isdigit()]
    if factor is None or not numbers or len(numbers) != len(amounts) or len(numbers) > 2:
        message = f"'{text}' must have one or two numbers and a unit, such as #{{date.past '15','5','SECONDS'}}"
        raise InvalidExpression(message, hint=f"units are {', '.join(_MILLIS)}")
    most = numbers[0] * factor
    least = numbers[1] * factor if len(numbers) == 2 else 0
    if not 0 <= least <= most:
        message = f"'{text}' has a maximum that is less than its minimum"
        raise InvalidExpression(message)
    return (-most, -least) if _normalize(match[1]).endswith("past") else (least, most)


def _check_literal(text: str, literal: str) -> None:
    if "#{" in literal:
        message = f"'{text}' has an incomplete call"
        raise InvalidExpression(message, hint="write #{category.method 'argument','argument'}")


def _arguments(text: str) -> tuple[str, ...]:
    return tuple(argument.replace("''", "'") for argument in _ARGUMENT.findall(text))


def _normalize(name: str) -> str:
    return name.replace("_", "").lower()


def _constant(text: str) -> Draw:
    return lambda _rng: text


def _compile_call(text: str, name: str, arguments: Sequence[str]) -> Draw:
    key = _normalize(name)
    try:
        if key in _OWN_METHODS:
            return _OWN_METHODS[key](arguments)
    except (ValueError, IndexError) as problem:
        message = f"'{text}' has wrong arguments for {name}: {', '.join(arguments) or 'none'}"
        raise InvalidExpression(message) from problem
    if key in WORDS:
        words = WORDS[key]
        return lambda rng: rng.choice(words)
    if key in _TIME_METHODS:
        message = f"'{text}' is a time relative to now"
        raise InvalidExpression(message, hint="declare the column TIMESTAMP(3) or TIMESTAMP_LTZ(3)")
    method = _FAKER_METHODS.get(key) or _snake_case(name.rpartition(".")[2])
    if not callable(getattr(_faker(), method, None)):
        message = f"'{text}' calls {name}, which is not known"
        raise InvalidExpression(message, hint="see the list in docs/howto/table-connectors.md")

    def draw(rng: SeededRandom) -> str:
        generator = _faker()
        generator.random = rng
        return str(getattr(generator, method)()).replace("\n", ", ")

    return draw


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


# ---------------------------------------------------------------------------------------- methods that Faker lacks


def _number_between(arguments: Sequence[str]) -> Draw:
    least, most = int(arguments[0]), int(arguments[1])
    if least > most:
        raise ValueError
    return lambda rng: str(rng.randrange(least, most) if least < most else least)


def _random_double(arguments: Sequence[str]) -> Draw:
    decimals, least, most = int(arguments[0]), float(arguments[1]), float(arguments[2])
    return lambda rng: f"{rng.uniform(least, most):.{decimals}f}"


def _digits(arguments: Sequence[str]) -> Draw:
    count = int(arguments[0]) if arguments else 1
    return lambda rng: "".join(rng.choices("0123456789", k=count))


def _random_number(arguments: Sequence[str]) -> Draw:
    count = int(arguments[0]) if arguments else 9
    return lambda rng: str(rng.randrange(10 ** (count - 1), 10**count))


def _price(arguments: Sequence[str]) -> Draw:
    least, most = (float(arguments[0]), float(arguments[1])) if arguments else (0.0, 100.0)
    return lambda rng: f"{rng.uniform(least, most):.2f}"


def _regexify(arguments: Sequence[str]) -> Draw:
    return compile_pattern(arguments[0])


def _replace_marks(arguments: Sequence[str], digit_mark: str, letter_mark: str) -> Draw:
    text = arguments[0]

    def draw(rng: SeededRandom) -> str:
        return "".join(
            rng.choice("0123456789")
            if character == digit_mark
            else rng.choice("abcdefghijklmnopqrstuvwxyz")
            if character == letter_mark
            else character
            for character in text
        )

    return draw


def _option(arguments: Sequence[str]) -> Draw:
    if not arguments:
        raise ValueError
    options = list(arguments)
    return lambda rng: rng.choice(options)


def _product_name(_arguments: Sequence[str]) -> Draw:
    adjectives, things = PRODUCTS
    materials = WORDS["commerce.material"]
    return lambda rng: f"{rng.choice(adjectives)} {rng.choice(materials)} {rng.choice(things)}"


_OWN_METHODS: dict[str, Callable[[Sequence[str]], Draw]] = {
    "bothify": lambda arguments: _replace_marks(arguments, "#", "?"),
    "commerce.price": _price,
    "commerce.productname": _product_name,
    "letterify": lambda arguments: _replace_marks(arguments, "", "?"),
    "number.digit": lambda _arguments: _digits(()),
    "number.digits": _digits,
    "number.negative": lambda _arguments: lambda rng: str(rng.randrange(-(2**31), 0)),
    "number.numberbetween": _number_between,
    "number.positive": lambda _arguments: lambda rng: str(rng.randrange(1, 2**31)),
    "number.randomdigit": lambda _arguments: _digits(()),
    "number.randomdouble": _random_double,
    "number.randomnumber": _random_number,
    "numerify": lambda arguments: _replace_marks(arguments, "#", ""),
    "options.option": _option,
    "random.nextint": lambda arguments: _number_between(("0", *arguments) if len(arguments) == 1 else arguments),
    "regexify": _regexify,
}
