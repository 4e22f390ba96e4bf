"""calibrary's metrics for Hugging Face's ``evaluate``.

    metric = evaluate.load("examples/evaluate_metric", "ece")
    metric.add_batch(predictions=probabilities, references=labels)  # as often as you like
    metric.compute(n_bins=10)  # {'ece': 0.058, 'low': ..., 'high': ..., 'pvalue': ...} with interval=True

The second argument is any name of the catalogue. ``predictions`` are P(class 1), one number for each row; of a model
with several classes pass the probability of the predicted class, and whether it was right as reference (the top label).
Needs ``pip install calibrary evaluate``.
"""

from __future__ import annotations

from typing import Any

import evaluate

import calibrary as cal
import datasets


class CalibraryMetric(evaluate.Metric):
    """One metric of the catalogue, named by the configuration."""

    def _info(self) -> evaluate.MetricInfo:
        entry = cal.catalogue["ece" if self.config_name == "default" else self.config_name]
        return evaluate.MetricInfo(
            description=entry.meaning,
            citation="; ".join(entry.references),
            inputs_description="predictions: P(class 1) of each row; references: 0 or 1.",
            features=datasets.Features(
                {"predictions": datasets.Value("float64"), "references": datasets.Value("int64")}
            ),
        )

    def _compute(
        self, predictions: Any, references: Any, interval: bool = False, rng: int = 0, **options: Any
    ) -> dict[str, float]:
        name = "ece" if self.config_name == "default" else self.config_name
        key = cal.catalogue[name].id
        if not interval:
            return {key: float(cal.compute(name, references, predictions, **options))}
        found = cal.interval(name, references, predictions, rng=rng, **options)
        numbers = {key: found.value, "low": found.low, "high": found.high}
        return numbers if found.pvalue is None else {**numbers, "pvalue": found.pvalue}
