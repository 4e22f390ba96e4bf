"""Columns are guessed by what they hold and by their names; where two fit, both are named and nothing is guessed."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from calibrary.cli.read import read_predictions
from calibrary.tables.guess import Guess, guessed_columns
from calibrary.tables.schema import facts_of
from calibrary.tables.sources import InputError

N = 200
RNG = np.random.default_rng(1)
P = RNG.random(N).round(4)
Y = (RNG.random(N) < P).astype(int)
#: Headers of labels and of probabilities as people write them.
PAIRS = [
    "y_test|prob_1",
    "event|p1",
    "died|p_yes",
    "Ground~Truth|predict_proba",
    "label|Predicted~Probability",
    "default|pd_12m",
    "outcome|Model~Probability",
    "churned|churn_score",
    "is_fraud|fraud_prob",
    "y|phat",
    "actual|probability",
    "readmitted|pred_risk",
    "target|P(event)",
    "disease|posterior",
    "class|softmax_1",
    "y_true|y_scores",
    "status|estimate",
    "survived|p_hat",
    "TARGET|PREDICTION",
    "Outcome|Risk~(12~months)",
    "clicked|pCTR",
    "won|win_probability",
    "converted|propensity",
    "death_30d|EuroSCORE",
    "mortality|apache",
    "gt|conf",
    "relapse|nomogram",
    "response|fitted",
    "truth|model_a",
    "hasDisease|modelOutput",
    "late|forecast",
    "rain|pop",
    "label_str|p",
    "labels|proba",
    "true_class|confidence_score",
    "sick|xgb",
    "obs|sim",
    "event_observed|predicted.risk",
    "x|z",
    "flag|value",
    "isDefault|PD",
    "y_obs|y_hat_prob",
    "Status~(1=dead)|S_risk",
    "target_flag|score_v2",
    "reoffended|decile_prob",
    "ReadmitWithin30|xgb_proba_1",
    "conv|p_conv",
    "spam|spamminess",
    "has_event|cif_5y",
    "adverse|ml.score",
    "icu_death|p.death",
    "Y|p.hat",
    "attrition|Prob(Yes)",
    "label_binary|positive_class_probability",
    "bad|scorecard",
    "HeartDisease|Predicted_Prob",
    "cancelled|cancel_prob",
    "pass|ability",
    "toxic|detoxify",
    "resp|prediction_1",
    "is_correct|model_confidence",
    "win|elo_expected",
    "claim|freq_model",
    "vte|caprini_p",
    "recid|compas",
    "y_val|val_probs",
    "truth_label|conf_score",
    "a1|b2",
    "yes_no|likelihood",
    "ExitusLetalis|Wahrscheinlichkeit",
]


def _file(tmp_path, columns, name="a.csv"):
    path = tmp_path / name
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def _beside():
    return {"case": range(1, N + 1), "age": RNG.integers(20, 90, N), "site": RNG.choice(list("abcd"), N)}


@pytest.mark.parametrize("pair", PAIRS)
def test_usual_headers_are_guessed(tmp_path, pair):
    label, prob = pair.replace("~", " ").split("|")
    found = read_predictions(_file(tmp_path, {**_beside(), label: Y, prob: P}))
    assert found.columns["label"] == label
    assert list(found.columns["models"].values()) == [[prob]]
    assert np.array_equal(found.y, Y)
    assert sum("guessed" in note for note in found.notes) == 2


def test_rivals_are_never_taken_in_place_of_a_column():
    """Beside another column of two values and another of numbers in [0, 1] a name decides, or nothing is guessed."""
    both = 0
    for pair in PAIRS:
        label, prob = pair.replace("~", " ").split("|")
        rivals = {"sex": 1 - Y, "frailty": P[::-1]}
        facts = facts_of({"case": np.arange(N), **rivals, label: Y, prob: P})
        found = guessed_columns(list(facts), (), lambda facts=facts: facts)
        assert found[0] in ("", label), pair
        assert found[1] in ([], [prob]), pair
        both += bool(found[0] and found[1])
        assert all(str(name) in " ".join(map(str, found[2])) for name in ("sex", label)) or found[0], pair
    assert both >= 40


def test_only_a_guess_that_no_name_confirms_is_by_content_alone(tmp_path):
    found = read_predictions(_file(tmp_path, {**_beside(), "x": Y, "z": P}))
    assert found.by_content == found.notes[:2]
    assert found.by_content[0] == "label column guessed: x (the only column with two values)"
    with pytest.raises(InputError, match=r"no name confirms this guess, and a gate needs .* --label and --prob"):
        found.refuse_guesses("a gate needs certain columns")
    named = read_predictions(_file(tmp_path, {**_beside(), "died": Y, "pd_12m": P}))
    assert named.by_content == ()
    named.refuse_guesses("a gate needs certain columns")


def test_where_two_columns_fit_nothing_is_guessed_and_both_are_named(tmp_path):
    two = {**_beside(), "a": Y, "b": 1 - Y, "risk": P}
    with pytest.raises(InputError, match=r"may be the label, because their values fit \('a', 'b'\): .*--label"):
        read_predictions(_file(tmp_path, two))
    two = {**_beside(), "died": Y, "a": P, "b": P[::-1]}
    with pytest.raises(InputError, match=r"may be the probability, because their values fit \('a', 'b'\): .*--prob"):
        read_predictions(_file(tmp_path, two))
    one = read_predictions(_file(tmp_path, {**_beside(), "died": Y, "sex": 1 - Y, "frailty": P[::-1], "pd": P}))
    assert (one.columns["label"], one.columns["models"]) == ("died", {"pd": ["pd"]})


def _classes(k=4):
    p = RNG.dirichlet(np.ones(k), N).round(6)
    return np.array([RNG.choice(k, p=row / row.sum()) for row in p]), p


def test_a_block_whose_rows_sum_to_1_is_the_probabilities_of_the_classes(tmp_path):
    y, p = _classes()
    names = np.array(["ant", "bee", "cat", "dog"])
    for columns in (
        {"species": names[y], **{f"prob_{name}": p[:, j] for j, name in enumerate(names)}},
        {"kind": names[y], **{str(name): p[:, j] for j, name in enumerate(names)}},
        {"digit": y, **{f"class{j}_score": p[:, j] for j in range(4)}},
    ):
        found = read_predictions(_file(tmp_path, {**_beside(), "sex": Y, **columns}))
        assert found.columns["label"] == next(iter(columns))
        (model,) = found.models.values()
        assert np.array_equal(found.y, y)
        assert np.allclose(model, p, atol=3e-6)


def test_logits_and_percentages_are_recognized_by_sign_and_range(tmp_path):
    logits = np.log(P / (1 - P)).round(3)
    for column, tolerance in (
        ({"margin": logits}, 1e-3),
        ({"risk_pct": [f"{100 * p:.1f}%" for p in P]}, 1e-3),
        ({"pd": (100 * P).round(1)}, 1e-3),
    ):
        found = read_predictions(_file(tmp_path, {**_beside(), "died": Y, **column}))
        (model,) = found.models.values()
        assert np.allclose(model, P, atol=tolerance)
    with pytest.raises(InputError, match="no column looks like a probability"):  # ages are no percentages
        read_predictions(_file(tmp_path, {**_beside(), "died": Y}))


def test_two_classes_of_four_logits_are_no_label(tmp_path):
    y, p = _classes()
    logits = {f"logit_{j}": np.log(p[:, j] + 1e-6).round(3) + 2 for j in range(4)}
    found = read_predictions(_file(tmp_path, {"digit": y, "sex": Y, **logits}))
    assert found.columns["label"] == "digit"
    with pytest.raises(InputError, match="no column looks like the label"):
        read_predictions(_file(tmp_path, {"sex": np.where(Y, "f", "m"), **logits}))


def test_a_long_file_is_guessed_from_its_beginning(tmp_path, monkeypatch):
    from calibrary.tables import text_files

    monkeypatch.setattr(text_files, "_LONG", 1000)
    monkeypatch.setattr(text_files, "_BEGINNING", 2000)
    found = read_predictions(_file(tmp_path, {**_beside(), "died": Y, "pd": P}))
    assert found.columns["label"] == "died"
    assert len(found.y) == N


def test_a_guess_is_a_sentence_that_knows_its_columns():
    label, prob, notes = guessed_columns(["y", "p0", "p1", "p2"])
    assert (label, prob) == ("y", ["p0", "p1", "p2"])
    assert all(isinstance(note, Guess) for note in notes)
    assert notes[1] == "probability columns guessed: p0 ... p2"
