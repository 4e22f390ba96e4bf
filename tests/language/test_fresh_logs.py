"""Logs that the real packages write here and now: Inspect with its mock model, lm-evaluation-harness with its dummy."""

from __future__ import annotations

import json

import numpy as np
import pytest

import calibrary as cal
from calibrary.language import read_log


def inspected(tmp_path, epochs=1, confidence=True):
    """A log of Inspect, and what its samples are made of: right or wrong, and how sure, by question and epoch."""
    inspect_ai = pytest.importorskip("inspect_ai")
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, scorer
    from inspect_ai.solver import solver

    from calibrary.inspect_ai import brier

    def made(number, epoch):
        rng = np.random.default_rng([number, epoch])
        sure = round(float(rng.uniform(0.3, 1.0)), 2)
        return sure, bool(rng.random() < sure)

    @solver
    def answered():
        async def solve(state, generate):
            _, right = made(state.metadata["number"], state.epoch)
            state.output = ModelOutput.from_content("mockllm/model", state.target.text if right else "wrong")
            return state

        return solve

    @scorer(metrics=[accuracy(), brier()] if confidence else [accuracy()])
    def checked():
        async def score(state, target):
            answer = state.output.completion
            sure = {"confidence": made(state.metadata["number"], state.epoch)[0]} if confidence else None
            return Score(value=CORRECT if answer == target.text else INCORRECT, answer=answer, metadata=sure)

        return score

    samples = [Sample(id=f"q{i}", input=f"{i}?", target=str(i), metadata={"number": i}) for i in range(12)]
    task = inspect_ai.Task(dataset=samples, solver=answered(), scorer=checked(), name="fresh")
    (log,) = inspect_ai.eval(task, model="mockllm/model", epochs=epochs, log_dir=str(tmp_path), display="none")
    assert log.status == "success"
    return log, made


def test_a_fresh_log_of_inspect(tmp_path):
    ran, made = inspected(tmp_path)
    log = read_log(next(tmp_path.glob("*.eval")))
    assert log.said == "Inspect, task fresh, 12 questions, scorer checked, confidence from metadata.confidence"
    expected = {f"q{i}": made(i, 1) for i in range(12)}
    rows = zip(log.columns["id"], log.columns["confidence"], log.columns["correct"], strict=True)
    assert {id: (sure, bool(right)) for id, sure, right in rows} == expected
    named = {name: m.value for score in ran.results.scores for name, m in score.metrics.items()}
    brier = cal.brier_score(log.columns["correct"], log.columns["confidence"])
    assert named["bs"] == pytest.approx(brier)  # what calibrary.inspect_ai wrote into the log


def test_fresh_epochs_of_inspect_are_sampled_answers(tmp_path):
    _, made = inspected(tmp_path, epochs=4, confidence=False)
    log = read_log(next(tmp_path.glob("*.eval")), sampled=True)
    answers, right, ids = log.sampled()
    assert log.unit == "id"
    for id, said, true in zip(ids, answers, right, strict=True):
        number = int(id[1:])
        wanted = [made(number, epoch)[1] for epoch in (1, 2, 3, 4)]
        assert true == wanted
        assert said == [str(number) if w else "wrong" for w in wanted]
    assert cal.sampled_answers(answers, right, n_resamples=99, rng=0).n == 12


def test_a_fresh_log_of_the_harness(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    lm_eval = pytest.importorskip("lm_eval")
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    questions = [
        {"question": f"{i} + 1", "choices": [str(i + 1), str(i + 2), "none of these"], "answer": i % 3, "half": i % 2}
        for i in range(20)
    ]
    data = tmp_path / "questions.jsonl"
    data.write_text("".join(json.dumps(q) + "\n" for q in questions))
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    (tasks / "sums.yaml").write_text(
        f"""task: fresh_sums
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
output_type: multiple_choice
test_split: test
doc_to_text: "{{{{question}}}} ="
doc_to_target: answer
doc_to_choice: choices
metric_list:
  - metric: acc
  - metric: acc_norm
"""
    )
    manager = TaskManager(include_path=str(tasks), include_defaults=False)
    found = lm_eval.simple_evaluate("dummy", tasks=["fresh_sums"], task_manager=manager, log_samples=True)
    tracker = EvaluationTracker(output_path=str(tmp_path / "out"))
    samples = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=samples)
    tracker.save_results_samples(task_name="fresh_sums", samples=samples["fresh_sums"])
    (path,) = (tmp_path / "out").rglob("samples_*.jsonl")
    for source in (path, path.parent):
        log = read_log(source)
        assert log.said == (
            "lm-evaluation-harness, task fresh_sums, 20 questions of 3 options, probabilities by softmax of "
            "log-likelihoods"
        )
    by_id = {s["doc_id"]: s for s in samples["fresh_sums"]}
    p = np.column_stack([log.columns[f"p{j}"] for j in range(3)])
    for id, label, row, half in zip(log.columns["id"], log.columns["label"], p, log.columns["doc.half"], strict=True):
        scores = np.array([r[0] for r in by_id[id]["filtered_resps"]], dtype=float)
        assert row == pytest.approx(np.exp(scores) / np.exp(scores).sum())
        assert (label, half) == (questions[id]["answer"], questions[id]["half"])
    accuracy = float(np.mean(p.argmax(axis=1) == np.array(log.columns["label"])))
    assert accuracy == pytest.approx(found["results"]["fresh_sums"]["acc,none"])
