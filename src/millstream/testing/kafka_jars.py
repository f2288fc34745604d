"""The jars of an Apache Kafka broker.

Promises: a folder with all jars of one release, downloaded once for each user. The variable MILLSTREAM_KAFKA_JARS can
name a folder of jars that exists already.
Does not know: brokers."""

from __future__ import annotations

import os
from pathlib import Path

from millstream.testing.maven import retrieve_cached

VERSION = "4.1.1"
_SCALA = "2.13"


def jars(version: str = VERSION) -> Path:
    """Return the folder with the broker's jars; they are downloaded if it does not exist."""
    existing = os.environ.get("MILLSTREAM_KAFKA_JARS")
    if existing:
        return Path(existing)
    return retrieve_cached(f"kafka-{version}", ("org.apache.kafka", f"kafka_{_SCALA}", version))
