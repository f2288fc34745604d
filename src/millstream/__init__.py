"""Apache Flink's stream processing in Python, with Spark as its engine."""

__version__ = "0.2.0"
