"""Every sentence of a page and of a result is made with its claims, and a new one without them is found.

The sections of a page are made of samples of known truth; the sentences of results by each function that gives one.
Evidence is held to its rate in ``test_claims.py`` for what every page says; here each claim is made at least once in a
world where it is true, and the worlds where it is untrue stay silent.
"""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np
import pytest
from test_claims import DRAWS, N_BINS, error_of, tempered, too_many

import calibrary as cal
from calibrary.base.claims import RULES, Claim, Sentence, claims_of
from calibrary.base.numbers import percent
from calibrary.evaluation import evaluate_data
from calibrary.inference.overall.decision import decide
from calibrary.language.planning import sampled_plan
from calibrary.question import Question
from calibrary.reporting.sections import Context, made
from calibrary.reporting.settings import ReportSettings
from calibrary.validation.procedure import Tally
from each import amount
from paths import ROOT
from truths import KnownTruth, holds

pytestmark = pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")

#: Sentences of sections that state nothing about the predictions: how the page was made, what was left out, and tests
#: that do not reject. ``tests/reporting/test_sections.py`` holds their counts to the data.
SILENT = (
    "Cross-validation with", "Fit the map on data", "There is no evidence that any segment",
    "No segment is large enough", "None of", "In none of", "Continuous monitoring would have raised no alarm",
    "Rows are assumed to be independent", "At threshold 0.", "600 rows with digest",
)  # fmt: skip


def page(world, seed, n=600):
    """The sections of a page, without figures, and what is so of its rows."""
    rng = np.random.default_rng([17, seed])
    c = rng.uniform(0.02, 0.98, n)
    site, when = np.arange(n) % 2, np.arange(n) // 150
    q = c.copy()
    if world == "one site":
        q = np.where(site == 1, tempered(0.3, -1.2)(c), c)
    if world == "later":
        q = np.where(when >= 2, tempered(0.3, -1.2)(c), c)
    y = (rng.random(n) < q).astype(int)
    data = cal.predictions(y, c).at_times(when)
    question = Question({"n_bins": N_BINS}, n_resamples=DRAWS, rng=0)
    table = evaluate_data(data, question, metrics=["ece"], intervals=True, tests=True, primary="ece")
    settings = ReportSettings(by={"site": site}, thresholds=[0.3, 0.5], time=when, primary="ece")
    sections = made(Context(data, question, table, DRAWS, settings, decide(data, question)))
    parts = {f"site = {k}": site == k for k in (0, 1)} | {f"{k}": when == k for k in range(4)}
    told = {}
    for name, rows in parts.items():
        told |= {f"{name} confidence": c[rows].mean(), f"{name} outcome": y[rows].mean()}
        told[name] = error_of(c[rows], y[rows])
    found = next(s for s in sections if s.key == "help").data
    for row in found["maps"]:
        told |= {f"gain of {row['map']}": row["before"] - row["after"], f"ECE after {row['map']}": row["ece"]}
    told |= {"ECE before": error_of(c, y), "confidence": c.mean(), "outcome": y.mean()}
    own = next(s for s in sections if s.key == "affected").data["own_maps"]
    weight = [len(site) / 2.0] * 2  # both sites are of one size: the gain of all rows is the mean of theirs
    told["gain by site"] = float(np.average([row["gain"] for row in own[0]["segments"]], weights=weight))
    return sections, KnownTruth(c, q, y=y, parts=parts, measured=told)


WORLDS = {"calibrated": amount(2, 4), "one site": amount(1, 2), "later": amount(1, 2)}


@pytest.fixture(scope="module")
def pages():
    return {world: [page(world, seed) for seed in range(n)] for world, n in WORLDS.items()}


def test_every_sentence_of_a_section_has_claims_or_states_nothing(pages):
    for each in pages.values():
        for sections, _ in each:
            for section in sections:
                for text in section.sentences:
                    assert claims_of(text) or text.startswith(SILENT), (section.key, text)


def test_what_sections_say_is_true(pages):
    told, false = {world: [] for world in WORLDS}, []
    for world, each in pages.items():
        for sections, truth in each:
            claims = [claim for s in sections for text in s.sentences for claim in claims_of(text)]
            told[world] += [claim.rule for claim in claims]
            wrong = {claim.rule for claim in claims if not holds(claim, truth)}
            facts = [rule for rule in wrong if RULES[rule].kind == "fact"]
            assert facts == [], [str(claim) for claim in claims if claim.rule in facts]
            false += [(world, rule) for rule in wrong]
    for pair in set(false):
        assert not too_many(false.count(pair), WORLDS[pair[0]]), pair
    assert {"part is miscalibrated", "recalibration helps", "segments differ", "measured"} <= set(told["one site"])
    assert "worth acting" in {rule for rules in told.values() for rule in rules}
    assert {"part is miscalibrated", "miscalibrated", "decides better"} & set(told["later"])


def test_a_segment_that_is_said_to_err_but_is_calibrated_is_caught(pages):
    _, truth = pages["one site"][0]
    assert holds(Claim("site = 1 errs", "part is miscalibrated", part="site = 1"), truth)
    assert not holds(Claim("site = 0 errs", "part is miscalibrated", part="site = 0"), truth)
    assert not holds(Claim("acting is worth less", "worth acting", threshold=0.5, default="none", sign=-1.0), truth)


# -- the power that a page names --------------------------------------------------------------------------------


# -- the sentences of results ----------------------------------------------------------------------------------


def rows(n, curve=lambda c: c, seed=0):
    rng = np.random.default_rng([23, seed])
    c = rng.uniform(0.02, 0.98, n)
    return (rng.random(n) < curve(c)).astype(int), c


def sampled_world(seed, slope=1.0, n=200, k=8):
    """Answers that agree with k samples each; of slope 1 the shares that agree are calibrated."""
    rng = np.random.default_rng([29, seed])
    q = rng.uniform(0.05, 0.95, n)
    agree = rng.binomial(k, q)
    right = rng.random(n) < tempered(slope)(q)
    samples = np.column_stack([np.ones(n, dtype=int), (np.arange(k) < agree[:, None]).astype(int)])
    return samples, right, q, agree / k


def test_sampled_answers_claim_what_is_so():
    false = 0
    for seed in range(10):
        agree, right, q, share = sampled_world(seed)
        found = cal.sampled_answers(agree.tolist(), right, n_resamples=199, rng=0)
        told = {"accuracy": right.mean(), "mean_confidence": share.mean(), "n": len(q)}
        truth = KnownTruth(q, q, of_metric={"true values": {"sampled answers": 0.0}}, measured=told)
        claims = found.sentence.claims
        assert all(holds(claim, truth) for claim in claims if RULES[claim.rule].kind == "fact"), found.sentence
        false += any(not holds(claim, truth) for claim in claims)
    assert not too_many(false, 10, level=0.1)


#: Every place in the library that makes a sentence of a result, and where its claims are held to the truth.
RESULTS = {
    "cli/server.py": "test_mcp.py: an estimate and a comparison of known truth",
    "diagnostics/direction.py": "test_claims.py: every binary world",
    "inference/overall/decision.py": "here: a model that is calibrated, and one that is too extreme",
    "inference/result.py": "test_shown_results.py: values of calibrated predictions",
    "inference/verbs/power.py": "here: the power by other draws",
    "inference/verbs/verdict.py": "test_claims.py: every binary world",
    "language/judge.py": "here: a judge that errs",
    "language/planning.py": "here: the power by other draws",
    "language/sampled.py": "here: calibrated answers",
    "lookup/study_findings.py": "test_claims.py: every metric of the study",
    "metrics/curve/cross_fitted.py": "test_shown_results.py: an error above a margin, and none",
    "metrics/machinery/shown.py": "test_shown_results.py: every kind of result in worlds of known truth",
    "recalibrate/segment_gain.py": "here: sites that err in different ways, and sites that do not",
    "recalibrate/table.py": "test_claims.py: every binary world of at least 80 rows",
    "scale/stream.py": "test_store_watch.py: a segment that changes, and segments that do not",
    "secondorder/calibration.py": "test_ensemble.py: posteriors that are right, too narrow and too wide",
    "secondorder/outside.py": "test_outside.py: rows outside by hand",
    "secondorder/spread.py": "test_ensemble.py: posteriors that are right, too narrow and too wide",
    "secondorder/uncertainty.py": "test_ensemble.py: posteriors that are right, too narrow and too wide",
    "secondorder/verb.py": "test_ensemble.py: all of them joined",
    "shift/curve.py": "test_shift_curve.py: groups whose error grows, and groups whose error does not",
    "shift/target.py": "test_under_shift.py: a target whose truth is known, and a violated assumption",
    "trial/plan.py": "test_precision.py: rows by the formulas solved independently",
    "trial/pooled.py": "test_pooled.py: pooled values of metafor",
    "validation/corrections.py": "here: shares of refits",
    "validation/procedure.py": "here: counts of refits",
    "validation/result.py": "here: apparent values by compute",
}


def sentences_made():
    """Functions, properties and fields called ``sentence`` (or ``..._sentence``, ``sentence_at``), by file."""
    found = {}
    for path in sorted((ROOT / "src" / "calibrary").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        nodes = list(ast.walk(ast.parse(text))) if "sentence" in text else []
        # what is sent as JSON is declared as plain text
        sent = {id(field) for node in nodes if isinstance(node, ast.ClassDef)
                if "TypedDict" in map(ast.unparse, node.bases) for field in node.body}  # fmt: skip
        for node in nodes:
            name, kind = None, None
            if id(node) in sent:
                continue
            if isinstance(node, ast.FunctionDef) and "sentence" in node.name.split("_"):
                name, kind = node.name, node.returns
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "sentence":
                name, kind = node.target.id, node.annotation
            if name is not None:
                file = str(path.relative_to(ROOT / "src" / "calibrary"))
                found.setdefault(file, []).append((name, ast.unparse(kind) if kind is not None else ""))
    return found


#: Sentences that are handed on: plots show what a result says, a gate's case quotes a verdict, and commands and the
#: app say why they refuse.
HANDED_ON = ("plots/recalibration.py", "cli/gates.py", "cli/main.py", "base/text.py", "cli/ending.py",
             "application/server.py")  # fmt: skip


def test_every_sentence_of_a_result_is_listed_and_carries_its_claims():
    found = {file: names for file, names in sentences_made().items() if file not in HANDED_ON}
    assert set(found) == set(RESULTS)
    plain = {(file, *each) for file, names in found.items() for each in names if each[1] != "Sentence"}
    assert plain == set()


def test_the_overall_test_claims_what_is_so():
    c = np.random.default_rng(3).uniform(0.02, 0.98, 600)
    for q, said in ((tempered(0.4, 0.0)(c), "There is evidence of"), (c, "There is no evidence of")):
        y = (np.random.default_rng(5).random(600) < q).astype(int)
        found = decide(cal.predictions(y, c), Question(n_resamples=199, rng=0)).sentence
        assert found.startswith(said)
        assert all(holds(claim, KnownTruth(c, q)) for claim in found.claims)
        assert not any(holds(claim, KnownTruth(c, c)) for claim in found.claims)


def test_the_sentences_of_a_power_tell_what_other_draws_find():
    asked = {"error": 0.08, "n_resamples": 300}
    found, other = (cal.power("ece", 300, rng=seed, **asked) for seed in (0, 1))
    (claim,) = found.sentence.claims
    assert claim.values["stated"] == {"power": found.power}
    assert f"in {percent(found.power)} of samples of 300 rows" in found.sentence
    assert abs(found.power - other.power) < 0.12  # three standard errors of the difference
    needed = cal.sample_size("ece", 0.08, rng=0, n_resamples=300)
    assert needed.sentence.claims[0].values["stated"] == {"n": needed.n}
    assert abs(cal.power("ece", needed.n, rng=2, **asked).power - 0.8) < 0.12


def test_a_judge_and_its_humans_claim_what_is_so():
    rng = np.random.default_rng(31)
    y, c = rows(400, seed=4)
    judge = np.where(rng.random(400) < 0.9, y, 1 - y)
    human = np.where(np.arange(400) < 150, y.astype(float), np.nan)
    found = cal.judged("ece", human, c, judge=judge, n_resamples=199, rng=0)
    agreement = np.mean(judge[:150] == y[:150])
    told = {"n_labels": 150, "n": 400, "agreement": agreement, "judge_only": found.judge_only}
    truth = KnownTruth(c, c, of_metric={"true values": {"ece": 0.0}}, measured=told)
    facts = [claim for claim in found.sentence.claims if RULES[claim.rule].kind == "fact"]
    assert facts
    assert all(holds(claim, truth) for claim in facts)


def test_a_plan_tells_a_power_that_other_draws_find():
    asked = {"budget": 1200, "error": 0.15, "n_resamples": 40}
    plan = sampled_plan(rng=0, **asked)
    other = sampled_plan(rng=7, **asked)
    powers = {(n, k): power for n, k, power in other.tried}
    truth = KnownTruth.about({"power of": lambda n, k: powers[n, k]})
    assert all(holds(claim, truth) for claim in plan.sentence.claims)
    wrong = Claim("", "planned", n=plan.n, k=plan.k, power=plan.power + 0.9, draws=40)
    assert not holds(wrong, truth)


def test_the_sentences_of_a_validation_are_of_its_numbers():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(2)
    x = rng.normal(size=(150, 3))
    y = (rng.random(150) < 1.0 / (1.0 + np.exp(-x[:, 0]))).astype(int)
    found = cal.validate(LogisticRegression(), x, y, n_resamples=12, rng=0)
    p = LogisticRegression().fit(x, y).predict_proba(x)[:, 1]
    told = {}
    for claim in found.sentence.claims:
        for name in claim.values["stated"]:
            metric = name.removeprefix("apparent ")
            told[name] = found.instability.overall if name == "instability" else number_of(metric, y, p)
    assert all(holds(claim, KnownTruth(p, p, measured=told)) for claim in found.sentence.claims)
    at = found.instability.sentence_at(0.5)
    share = ((found.instability.predictions >= 0.5) != (found.instability.apparent >= 0.5)).mean(axis=0)
    known = {"changed": share.mean(), "often": (share > 0.1).mean()}
    assert all(holds(claim, KnownTruth(p, p, measured=known)) for claim in at.claims)


def number_of(name, y, p):
    metric, _, part = name.partition(".")
    found = cal.compute(metric, y, p)
    return float(getattr(found, part)) if part else float(found)


def test_a_tally_counts_its_refits():
    tally = Tally(n=20, n_failed=3, failure="no")
    known = KnownTruth(np.ones(1), np.ones(1), measured={"refits": 20, "failed": 3})
    assert all(holds(claim, known) for claim in tally.sentence.claims)
    assert not holds(replace(tally, n_failed=4).sentence.claims[0], known)
    assert Tally().sentence == ""


def test_a_sentence_keeps_its_claims_through_a_pickle():
    import pickle

    said = Sentence.joined(" ", [Sentence("one.", Claim("one", "miscalibrated")), Claim("two.", "both ways"), "three."])
    again = pickle.loads(pickle.dumps(said))
    assert (again, [c.rule for c in again.claims]) == ("one. two. three.", ["miscalibrated", "both ways"])
