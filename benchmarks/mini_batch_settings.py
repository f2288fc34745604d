"""Mini-batches in SQL, the same options for millstream and for Flink.

Promises: standard library only.
Does not know: any engine."""


def mini_batches(size: int) -> dict[str, str]:
    """The settings for mini-batches of so many rows, or of two seconds."""
    return {
        "table.exec.mini-batch.enabled": "true",
        "table.exec.mini-batch.allow-latency": "2 s",
        "table.exec.mini-batch.size": str(size),
    }
