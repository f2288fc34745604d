"""Built-in aggregates for windows: `window(...).aggregate(Aggregations(n=Count(), total=Sum("amount")))`."""

from __future__ import annotations

from millstream.functions.aggregations import Aggregate, Aggregations, Avg, Count, Max, Min, Sum

__all__ = ["Aggregate", "Aggregations", "Avg", "Count", "Max", "Min", "Sum"]
