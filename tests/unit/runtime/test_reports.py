"""Reports and failures are decoded with equal values, and those of another release are refused."""

import json
import pickle

import numpy as np
import pytest

from millstream.job.accumulators import IntCounter
from millstream.runtime import block as blocks
from millstream.runtime import report as reports
from millstream.runtime.memory import SubtaskMemory
from millstream.runtime.operators.sink import SinkMemory
from millstream.runtime.report import TaskFailure, TaskReport
from millstream.state.handles import Handle

ATTEMPT = blocks.attempt_token("1-0")
REPORT = TaskReport(
    vertex="v",
    subtask=3,
    attempt=ATTEMPT,
    states={"a": (Handle("f", 1, "00", 2, covers=("e",)),)},
    memory={"a": SubtaskMemory(watermark=3).with_parts([SinkMemory(idle=True)])},
    results={"s": [("staged", b"1")]},
    timer=50,
    metrics={"a": {"records_in": 2, "distribution.d": {"min": 1.5}}},
    printed="ünglück \ud800",
    watermark=4,
    busy=0.25,
    sent={0: 1 << 127, 1: 0},
    read={0: 5},
    bytes_in=600,
    bytes_out=500,
)


def test_a_report_survives_a_round_trip():
    assert reports.unpack_report(reports.pack_report(REPORT)) == REPORT
    assert blocks.header(reports.pack_report(REPORT)).upstream == 3


def test_accumulators_and_numpy_numbers_survive_a_round_trip():
    counter = IntCounter()
    counter.add(3)
    metrics = {"a": {"user.sizes": np.int64(7), "user.rate": np.float32(0.5)}}
    report = TaskReport("v", 0, ATTEMPT, metrics=metrics, accumulators={"n": counter})
    unpacked = reports.unpack_report(reports.pack_report(report))
    assert unpacked.accumulators["n"].get_local_value() == 3
    assert unpacked.metrics == {"a": {"user.sizes": 7, "user.rate": 0.5}}


def test_a_failure_survives_a_round_trip():
    failure = TaskFailure("user", "v (1/2)", "ünglück \ud800", hint="h", operator="map", trace="t", key="k", record="r")
    assert reports.unpack_failure(reports.pack_failure(1, failure)) == failure


def test_another_version_is_refused(monkeypatch):
    monkeypatch.setattr(reports, "VERSION", 3)
    report, failure = reports.pack_report(REPORT), reports.pack_failure(1, TaskFailure("user", "v", "p"))
    monkeypatch.undo()
    with pytest.raises(reports.UnknownReportVersion, match="reports in version 3, the driver reads version 2"):
        reports.unpack_report(report)
    with pytest.raises(reports.UnknownReportVersion, match="version 3"):
        reports.unpack_failure(failure)


@pytest.mark.parametrize("data", [[], {}, {"version": 2}, {"version": 2, "vertex": 1}])
def test_a_block_that_is_not_a_report_is_refused(data):
    head = blocks.pack_header(blocks.BlockKind.REPORT, 0, 0, 0)
    with pytest.raises(blocks.DamagedBlock):
        reports.unpack_report(head + pickle.dumps((data, {}, {})))
    with pytest.raises(blocks.DamagedBlock):
        reports.unpack_failure(head + json.dumps(data).encode())
