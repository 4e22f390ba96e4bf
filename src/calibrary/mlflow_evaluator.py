"""The evaluator "calibrary" of ``mlflow.models.evaluate``, which MLflow finds by its entry point."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from mlflow.models.evaluation.base import EvaluationResult, ModelEvaluator

from calibrary.base.errors import RefusedError, warn

#: Where the names of ``evaluator_config`` are other than those of a report.
_THEIRS = {"sample_weights": "sample_weight", "label_list": "labels"}


class CalibrationEvaluator(ModelEvaluator):  # type: ignore[misc]
    """Log the report of a classifier: ``mlflow.models.evaluate(..., model_type="classifier", evaluators="calibrary")``.

    The probabilities are those of the model's ``predict_proba``, or its predictions (or those of the data) where these
    are probabilities. ``evaluator_config`` may hold settings of :func:`calibrary.report` (``primary``, ``n_resamples``,
    ``pos_label``, ...) and ``label_list`` and ``sample_weights``, as for MLflow's own evaluator of classifiers; other
    names are left to other evaluators. Without ``evaluators=`` MLflow calls every evaluator that is installed: if there
    are no probabilities, this one warns and logs nothing.
    """

    @classmethod
    def can_evaluate(cls, *, model_type: str | None, evaluator_config: Any, **others: Any) -> bool:
        """Classifiers only."""
        return model_type == "classifier"

    def evaluate(self, *, dataset: Any, evaluator_config: Any, model: Any = None, **others: Any) -> EvaluationResult:
        """The numbers that were logged, and the page, its data and a reliability diagram."""
        import mlflow
        from mlflow.models.evaluation.artifacts import JsonEvaluationArtifact, TextEvaluationArtifact

        from calibrary import plots
        from calibrary.mlflow import log_report
        from calibrary.reporting.compose import report
        from calibrary.tracking import logged_numbers

        settings = {_THEIRS.get(name, name): value for name, value in (evaluator_config or {}).items()}
        known = set(inspect.signature(report).parameters)
        settings = {name: value for name, value in settings.items() if name in known}
        try:
            p, classes = _probabilities(model, dataset)
            settings |= {} if classes is None else {"labels": classes}
            found = report(dataset.labels_data, p, **settings)
        except RefusedError as error:
            warn(f"the evaluator calibrary logged nothing: {error}")
            return EvaluationResult(metrics={}, artifacts={})
        log_report(found)
        drawn = plots.ReliabilityDisplay(plots.reliability_data(found.predictions, interval=False)).plot()
        mlflow.log_figure(drawn.figure_, "calibration/reliability.png")
        page, data = (mlflow.get_artifact_uri(f"calibration/report.{end}") for end in ("html", "json"))
        artifacts = {
            "calibration_page": TextEvaluationArtifact(uri=page, content=found.to_html()),
            "calibration_report": JsonEvaluationArtifact(uri=data, content=found.to_dict()),
        }
        return EvaluationResult(metrics=logged_numbers(found), artifacts=artifacts)


def _probabilities(model: Any, dataset: Any) -> tuple[Any, list[Any] | None]:
    """The probabilities, and the classes of their columns where the model names them."""
    if model is None:
        return _not_labels(dataset.predictions_data, "the predictions of the data"), None
    try:
        raw = model.get_raw_model()
    except (AttributeError, NotImplementedError):
        raw = None
    if hasattr(raw, "predict_proba"):
        classes = getattr(raw, "classes_", None)
        return raw.predict_proba(dataset.features_data), None if classes is None else list(classes)
    return _not_labels(
        model.predict(dataset.features_data), "the predictions of the model, which has no predict_proba,"
    ), None


def _not_labels(predictions: Any, what: str) -> Any:
    values = np.asarray(predictions)
    if values.dtype.kind != "f" or np.isin(values, (0.0, 1.0)).all():
        raise RefusedError(
            f"{what} are labels and not probabilities: pass a model with predict_proba, or probabilities"
        )
    return predictions
