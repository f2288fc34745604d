"""Nexmark's events: persons, auctions and bids of an online auction house, made column by column.

Promises: the published proportions (1 person, 3 auctions, 46 bids) and distributions; an event follows from its index
and the seed alone, however events are cut. Events are 1 / `rate` seconds apart, in order.
Does not know: files, engines.

Events are made in blocks of `BLOCK`, each with random numbers of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BLOCK = 10_000
PERSONS, AUCTIONS, BIDS = 1, 3, 46
TOTAL = PERSONS + AUCTIONS + BIDS

_FIRST_PERSON, _FIRST_AUCTION, _FIRST_CATEGORY = 1000, 1000, 10
_CATEGORIES = 5
_HOT = 100  # one of so many persons or auctions is hot
_HOT_AUCTIONS, _HOT_SELLERS, _HOT_BIDDERS = 2, 4, 4  # one in so many choices is not a hot one
_ACTIVE_PERSONS, _OPEN_AUCTIONS, _LEAD = 1000, 100, 10
_PERSON_BYTES, _AUCTION_BYTES, _BID_BYTES = 200, 500, 100
_CHANNELS = 10_000

_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_SURNAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = (
    "Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"
)  # fmt: skip
_HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")

_TIME = pa.timestamp("ms")
PERSON = pa.struct(
    [
        *((name, pa.int64() if name == "id" else pa.string()) for name in ("id", "name", "emailAddress", "creditCard")),
        *((name, pa.string()) for name in ("city", "state")),
        ("dateTime", _TIME),
        ("extra", pa.string()),
    ]
)
AUCTION = pa.struct(
    [
        ("id", pa.int64()),
        ("itemName", pa.string()),
        ("description", pa.string()),
        ("initialBid", pa.int64()),
        ("reserve", pa.int64()),
        ("dateTime", _TIME),
        ("expires", _TIME),
        ("seller", pa.int64()),
        ("category", pa.int64()),
        ("extra", pa.string()),
    ]
)
BID = pa.struct(
    [
        ("auction", pa.int64()),
        ("bidder", pa.int64()),
        ("price", pa.int64()),
        ("channel", pa.string()),
        ("url", pa.string()),
        ("dateTime", _TIME),
        ("extra", pa.string()),
    ]
)


@dataclass(frozen=True)
class Nexmark:
    """What the events follow from. The first is at `start` milliseconds; `rate` events make a second of event time."""

    seed: int = 7
    rate: int = 10_000
    start: int = 1_700_006_380_000  # twenty seconds before midnight

    def block(self, number: int) -> tuple[np.ndarray, pa.Array, pa.Array, pa.Array]:
        """The kinds of the events of a block (0 person, 1 auction, 2 bid), then its persons, auctions and bids."""
        index = np.arange(number * BLOCK, (number + 1) * BLOCK, dtype=np.int64)
        place = index % TOTAL
        kinds = (place >= PERSONS).astype(np.int32) + (place >= PERSONS + AUCTIONS)
        random = np.random.default_rng([self.seed, number])
        persons = self._persons(index[kinds == 0], random)
        auctions = self._auctions(index[kinds == 1], random)
        return kinds, persons, auctions, self._bids(index[kinds == 2], random)

    def times(self, index: np.ndarray) -> np.ndarray:
        """When events happen, in milliseconds."""
        return self.start + index * 1000 // self.rate

    def _persons(self, index: np.ndarray, random: np.random.Generator) -> pa.Array:
        count = len(index)
        name = _joined(_chosen(_NAMES, count, random), " ", _chosen(_SURNAMES, count, random))
        mail = _joined(_texts(7, count, random), "@", _texts(5, count, random), ".com")
        card = _joined(*_between(" ", [_digits(4, count, random) for _ in range(4)]))
        city, state = _chosen(_CITIES, count, random), _chosen(_STATES, count, random)
        used = 16 + sum(_lengths(each) for each in (name, mail, card, city, state))
        columns = [
            pa.array(_last_person(index) + _FIRST_PERSON), name, mail, card, city, state,
            _moments(self.times(index)), _extra(_PERSON_BYTES, used, random),
        ]  # fmt: skip
        return pa.StructArray.from_arrays(columns, fields=list(PERSON))

    def _auctions(self, index: np.ndarray, random: np.random.Generator) -> pa.Array:
        count = len(index)
        hot = random.integers(0, _HOT_SELLERS, count) > 0
        seller = np.where(hot, _last_person(index) // _HOT * _HOT, _some_person(index, random)) + _FIRST_PERSON
        first = _prices(count, random)
        times = self.times(index)
        ahead = _OPEN_AUCTIONS * TOTAL // AUCTIONS  # so many events bring as many auctions as are open at a time
        span = np.maximum((self.times(index + ahead) - times) * 2, 1)
        expires = times + 1 + (random.random(count) * span).astype(np.int64)
        item, about = _texts(20, count, random), _texts(100, count, random)
        used = 48 + _lengths(item) + _lengths(about)
        columns = [
            pa.array(_last_auction(index) + _FIRST_AUCTION), item, about,
            pa.array(first), pa.array(first + _prices(count, random)), _moments(times), _moments(expires),
            pa.array(seller), pa.array(_FIRST_CATEGORY + random.integers(0, _CATEGORIES, count)),
            _extra(_AUCTION_BYTES, used, random),
        ]  # fmt: skip
        return pa.StructArray.from_arrays(columns, fields=list(AUCTION))

    def _bids(self, index: np.ndarray, random: np.random.Generator) -> pa.Array:
        count = len(index)
        last = _last_auction(index)
        least = np.maximum(last - _OPEN_AUCTIONS, 0)
        near = least + (random.random(count) * (last - least + 1 + _LEAD)).astype(np.int64)
        auction = np.where(random.integers(0, _HOT_AUCTIONS, count) > 0, last // _HOT * _HOT, near)
        hot = random.integers(0, _HOT_BIDDERS, count) > 0
        bidder = np.where(hot, _last_person(index) // _HOT * _HOT + 1, _some_person(index, random))
        channel, url = _channels(count, random)
        used = np.full(count, 32, dtype=np.int64)
        columns = [
            pa.array(auction + _FIRST_AUCTION), pa.array(bidder + _FIRST_PERSON), pa.array(_prices(count, random)),
            channel, url, _moments(self.times(index)), _extra(_BID_BYTES, used, random),
        ]  # fmt: skip
        return pa.StructArray.from_arrays(columns, fields=list(BID))


# ------------------------------------------------------------------------------------------------------------ numbers


def _last_person(index: np.ndarray) -> np.ndarray:
    """The number of the newest person at each event."""
    return index // TOTAL * PERSONS + np.minimum(index % TOTAL, PERSONS - 1)


def _last_auction(index: np.ndarray) -> np.ndarray:
    """The number of the newest auction at each event, -1 where there is none yet."""
    return index // TOTAL * AUCTIONS + np.minimum(index % TOTAL - PERSONS, AUCTIONS - 1)


def _some_person(index: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """One of the active persons, or of those who will come soon."""
    known = _last_person(index) + 1
    active = np.minimum(known, _ACTIVE_PERSONS)
    return known - active + (random.random(len(index)) * (active + _LEAD)).astype(np.int64)


def _prices(count: int, random: np.random.Generator) -> np.ndarray:
    """From 100 to 100,000,000, their logarithms evenly spread."""
    made: np.ndarray = np.rint(10.0 ** (random.random(count) * 6) * 100).astype(np.int64)
    return made


def _moments(times: np.ndarray) -> pa.Array:
    return pa.array(times).cast(_TIME)


# -------------------------------------------------------------------------------------------------------------- texts


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _between(sign: str, parts: list[pa.Array]) -> list[pa.Array | str]:
    return [each for part in parts for each in (part, sign)][:-1]


def _chosen(texts: tuple[str, ...], count: int, random: np.random.Generator) -> pa.Array:
    return pa.array(texts).take(pa.array(random.integers(0, len(texts), count)))


def _digits(length: int, count: int, random: np.random.Generator) -> pa.Array:
    return _strings(np.full(count, length), random.integers(48, 58, length * count, dtype=np.uint8))


def _texts(limit: int, count: int, random: np.random.Generator, sign: str = " ") -> pa.Array:
    """Texts of 3 to `limit` - 1 letters, one in thirteen of those inside another sign."""
    lengths = 3 + random.integers(0, limit - 3, count)
    letters = _letters(int(lengths.sum()), random)
    signs = random.integers(0, 13, len(letters)) == 0
    ends = np.cumsum(lengths)
    signs[ends - lengths] = signs[ends - 1] = False
    letters[signs] = ord(sign)
    return _strings(lengths, letters)


def _letters(count: int, random: np.random.Generator) -> np.ndarray:
    return random.integers(97, 123, count, dtype=np.uint8)


def _strings(lengths: np.ndarray, letters: np.ndarray) -> pa.Array:
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(letters))


def _lengths(texts: pa.Array) -> np.ndarray:
    made: np.ndarray = pc.utf8_length(texts).to_numpy(zero_copy_only=False).astype(np.int64)
    return made


def _extra(wanted: int, used: np.ndarray, random: np.random.Generator) -> pa.Array:
    """Letters that bring a record to about the wanted size, a fifth more or less."""
    left = np.maximum(wanted - used, 0)
    spread = np.rint(left * 0.2).astype(np.int64)
    lengths = left - spread + (random.random(len(left)) * 2 * spread).astype(np.int64)
    return _strings(lengths, _letters(int(lengths.sum()), random))


def _channels(count: int, random: np.random.Generator) -> tuple[pa.Array, pa.Array]:
    """Half of the bids come through four channels, whose addresses say nothing; most others have a number in theirs."""
    parts = [_texts(5, count, random, "_") for _ in range(3)]
    base = _joined("https://www.nexmark.com/", *_between("/", parts), "/item.htm?query=1")
    number = random.integers(0, _CHANNELS, count)
    told = _joined(base, "&channel_id=", pa.array(_reversed_bits(number)).cast(pa.string()))
    cold = pc.if_else(pa.array(random.integers(0, 10, count) > 0), told, base)
    hot = pa.array(random.integers(0, 2, count) > 0)
    named = _joined("channel-", pa.array(number).cast(pa.string()))
    return pc.if_else(hot, _chosen(_HOT_CHANNELS, count, random), named), pc.if_else(hot, base, cold)


def _reversed_bits(number: np.ndarray) -> np.ndarray:
    """The 32 bits of each number in the other order, as a signed number without its sign."""
    bits = number.astype(np.uint32)
    made = np.zeros(len(bits), dtype=np.uint32)
    for place in range(32):
        made |= ((bits >> np.uint32(place)) & np.uint32(1)) << np.uint32(31 - place)
    return np.abs(made.view(np.int32).astype(np.int64))
