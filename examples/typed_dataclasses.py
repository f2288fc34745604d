"""Dataclasses as records: type hints give the type of a stream, so records are sent and stored as columns."""

from dataclasses import dataclass

from millstream.datastream import StreamExecutionEnvironment


@dataclass(frozen=True)
class Trip:
    driver: str
    kilometres: float
    tip: int | None = None


@dataclass(frozen=True)
class Bill:
    driver: str
    cents: int


def bill(trip: Trip) -> Bill:
    return Bill(trip.driver, round(trip.kilometres * 210) + (trip.tip or 0))


def driver_of(bill: Bill) -> str:
    return bill.driver


def together(one: Bill, other: Bill) -> Bill:
    return Bill(one.driver, one.cents + other.cents)


env = StreamExecutionEnvironment.get_execution_environment()
trips = env.from_collection([Trip("ada", 3.5), Trip("bob", 10.0, tip=200), Trip("ada", 1.2, tip=50)])
bills = trips.map(bill)
print(bills.get_type())
for total in bills.key_by(driver_of).reduce(together).execute_and_collect():
    print(total)
