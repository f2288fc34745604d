"""Sources that cannot replay: their records are first received into a write-ahead log, and then read from it."""

from millstream.connectors.receiver.contract import Emit, Receiver, ReceiverStopped
from millstream.connectors.receiver.enumerator import ReceiverFailed
from millstream.connectors.receiver.log import LogDamaged, LogTaken, LogTruncated, SegmentedLog
from millstream.connectors.receiver.socket_text import CannotConnect, SocketTextReceiver
from millstream.connectors.receiver.source import ReceiverSource

__all__ = [
    "CannotConnect",
    "Emit",
    "LogDamaged",
    "LogTaken",
    "LogTruncated",
    "Receiver",
    "ReceiverFailed",
    "ReceiverSource",
    "ReceiverStopped",
    "SegmentedLog",
    "SocketTextReceiver",
]
