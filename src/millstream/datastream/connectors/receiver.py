"""Sources that cannot replay: a receiver of the program's own, with a write-ahead log between it and the job."""

from millstream.connectors.receiver import Emit, Receiver, ReceiverSource, ReceiverStopped, SocketTextReceiver

__all__ = ["Emit", "Receiver", "ReceiverSource", "ReceiverStopped", "SocketTextReceiver"]
