"""Bad records: of 5,000 records in each format, every twentieth cannot be read. `fail` names it, `skip` counts it, and
`dead-letter` keeps it."""

import pytest
from registry_server import running_registry
from samples import KIND, SAMPLES

from millstream.formats import OnError, UndecodableRecord, apply_error_policy, format_named

COUNT, EVERY = 5_000, 20
BAD = range(7, COUNT, EVERY)


def poisoned(made, sample):
    good = made.encode([sample.row(number) for number in range(COUNT)])
    return [sample.bad(number) if number in BAD else good[number] for number in range(COUNT)]


def check(make, sample):
    failing = make()
    records = poisoned(failing, sample)
    decoded = failing.decode(records)
    with pytest.raises(UndecodableRecord, match=r"record 7 of the batch") as caught:
        apply_error_policy(failing, decoded, lambda index: f"record {index} of the batch")
    assert caught.value.data == records[7]
    for policy in ("skip", "dead_letter"):
        lenient = make(**{"on-error": policy})
        decoded = lenient.decode(records)
        kept = apply_error_policy(lenient, decoded, str)
        assert lenient.on_error is OnError.of(policy)
        assert [(bad.index, bad.data) for bad in kept] == [(number, records[number]) for number in BAD]
        assert all(bad.reason for bad in kept)
        rows = lenient.type_info.conform(decoded.rows(lenient.type_info))
        assert rows == [sample.row(number) for number in range(COUNT) if number not in BAD]
        assert [decoded.origin_of(at) for at in range(len(rows))] == [n for n in range(COUNT) if n not in BAD]


@pytest.mark.parametrize("name", SAMPLES)
def test_every_bad_record_is_named_counted_or_kept(name, tmp_path):
    sample = SAMPLES[name]
    check(lambda **more: sample.format(tmp_path, **more), sample)


def test_every_bad_record_with_a_registry_is_named_counted_or_kept():
    with running_registry() as url:
        options = {"url": url, "subject": "people-value"}
        sample = SAMPLES["json"]
        check(lambda **more: format_named("avro-confluent", KIND, {**options, **more}), sample)
