"""The metrics of ML_EVALUATE: the predictions of a model, compared with labels.

Promises: a metric is computed from sums and counts, so the rows are not kept. A row without a label or a prediction is
not counted. Without rows the result is NULL.
Does not know: models, and how predictions are made."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

Sums = dict[str, float]


class Evaluation:
    """An aggregate function of pairs of a label and a prediction. `measure` returns what a pair adds to the sums."""

    def __init__(
        self, measure: Callable[[Any, Any], Mapping[str, float]], summarize: Callable[[Sums], dict[str, float]]
    ) -> None:
        self._measure, self._summarize = measure, summarize

    def create_accumulator(self) -> Sums:
        """Return the sums of no rows."""
        return {}

    def accumulate(self, accumulator: Sums, label: Any, prediction: Any) -> None:
        """Add a row."""
        if label is None or prediction is None:
            return
        for name, value in self._measure(label, prediction).items():
            accumulator[name] = accumulator.get(name, 0.0) + value

    def merge(self, accumulator: Sums, accumulators: list[Sums]) -> None:
        """Add the sums of other accumulators."""
        for other in accumulators:
            for name, value in other.items():
                accumulator[name] = accumulator.get(name, 0.0) + value

    def get_value(self, accumulator: Sums) -> dict[str, float] | None:
        """Return the metrics."""
        return self._summarize(accumulator) if accumulator else None


def _measure_regression(label: Any, prediction: Any) -> Mapping[str, float]:
    actual, predicted = float(label), float(prediction)
    error = predicted - actual
    return {"n": 1, "label": actual, "label2": actual**2, "error": abs(error), "error2": error**2}


def _summarize_regression(sums: Sums) -> dict[str, float]:
    count, squared = sums["n"], sums["error2"]
    variation = sums["label2"] - sums["label"] ** 2 / count
    return {
        "mean_absolute_error": sums["error"] / count,
        "mean_squared_error": squared / count,
        "root_mean_squared_error": math.sqrt(squared / count),
        "r2_score": 1 - squared / variation if variation > 0 else 0.0,
    }


def _measure_pair(label: Any, prediction: Any) -> Mapping[str, float]:
    label, prediction = str(label), str(prediction)
    return {f"{len(label)}:{label}{prediction}": 1}


def _read_pairs(sums: Sums) -> Counter[tuple[str, str]]:
    pairs: Counter[tuple[str, str]] = Counter()
    for key, count in sums.items():
        length, _, text = key.partition(":")
        pairs[text[: int(length)], text[int(length) :]] += int(count)
    return pairs


def _summarize_classification(sums: Sums) -> dict[str, float]:
    pairs = _read_pairs(sums)
    labels, predictions = _count_sides(pairs)
    precisions, recalls, scores = [], [], []
    for name in {*labels, *predictions}:
        correct = pairs[name, name]
        precision = correct / predictions[name] if predictions[name] else 0.0
        recall = correct / labels[name] if labels[name] else 0.0
        precisions.append(precision)
        recalls.append(recall)
        scores.append(2 * precision * recall / (precision + recall) if precision + recall else 0.0)
    return {
        "accuracy": sum(count for (label, prediction), count in pairs.items() if label == prediction) / pairs.total(),
        "precision": sum(precisions) / len(precisions),
        "recall": sum(recalls) / len(recalls),
        "f1_score": sum(scores) / len(scores),
    }


def _summarize_clustering(sums: Sums) -> dict[str, float]:
    pairs = _read_pairs(sums)
    labels, clusters = _count_sides(pairs)
    count = pairs.total()
    largest: dict[str, int] = {}
    for (_, cluster), size in pairs.items():
        largest[cluster] = max(size, largest.get(cluster, 0))
    together = sum(math.comb(size, 2) for size in pairs.values())
    same_label = sum(math.comb(size, 2) for size in labels.values())
    same_cluster = sum(math.comb(size, 2) for size in clusters.values())
    all_pairs = math.comb(count, 2)
    agreed = all_pairs + 2 * together - same_label - same_cluster
    return {"purity": sum(largest.values()) / count, "rand_index": agreed / all_pairs if all_pairs else 1.0}


def _count_sides(pairs: Counter[tuple[str, str]]) -> tuple[Counter[str], Counter[str]]:
    labels: Counter[str] = Counter()
    predictions: Counter[str] = Counter()
    for (label, prediction), count in pairs.items():
        labels[label] += count
        predictions[prediction] += count
    return labels, predictions


def _measure_embedding(label: Any, prediction: Any) -> Mapping[str, float]:
    expected, actual = [float(x) for x in label], [float(x) for x in prediction]
    lengths = math.hypot(*expected) * math.hypot(*actual)
    product = sum(x * y for x, y in zip(expected, actual, strict=True))
    return {"n": 1, "similarity": product / lengths if lengths else 0.0, "distance": math.dist(expected, actual)}


def _summarize_embedding(sums: Sums) -> dict[str, float]:
    count = sums["n"]
    return {
        "mean_cosine_similarity": sums["similarity"] / count,
        "mean_euclidean_distance": sums["distance"] / count,
    }


def _measure_text(label: Any, prediction: Any) -> Mapping[str, float]:
    expected, actual = Counter(str(label).split()), Counter(str(prediction).split())
    total = expected.total() + actual.total()
    score = 2 * (expected & actual).total() / total if total else 1.0
    return {"n": 1, "exact": float(label == prediction), "score": score}


def _summarize_text(sums: Sums) -> dict[str, float]:
    return {"exact_match": sums["exact"] / sums["n"], "word_f1_score": sums["score"] / sums["n"]}


EVALUATIONS: dict[str, Evaluation] = {
    "regression": Evaluation(_measure_regression, _summarize_regression),
    "classification": Evaluation(_measure_pair, _summarize_classification),
    "clustering": Evaluation(_measure_pair, _summarize_clustering),
    "embedding": Evaluation(_measure_embedding, _summarize_embedding),
    "text_generation": Evaluation(_measure_text, _summarize_text),
}
