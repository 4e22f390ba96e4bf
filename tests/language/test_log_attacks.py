"""Logs made from known answers and changed: the number is the right one, or the log is refused in one sentence."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import calibrary as cal
from calibrary.language import read_log, stream
from calibrary.language.log import LogError

# -- Inspect ----------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
SURE = RNG.uniform(0.6, 0.99, 40).round(2).tolist()
RIGHT = [bool(RNG.random() < c) for c in SURE]


def sample(i, confidence, right=True, epoch=1, scorer="match", answer="A"):
    score = {"value": "C" if right else "I", "answer": answer, "metadata": {"confidence": confidence}}
    return {"id": f"q{i}", "epoch": epoch, "scores": {scorer: score}}


def inspected(tmp_path, samples, text=None, **header):
    """A JSON log of Inspect with these samples."""
    whole = {"version": 2, "status": "success", "eval": {"task": "t"}, **header, "samples": samples}
    path = tmp_path / "log.json"
    path.write_text(text(json.dumps(whole)) if text else json.dumps(whole))
    return path


def known(convert=float):
    return [sample(i, convert(c), y) for i, (c, y) in enumerate(zip(SURE, RIGHT, strict=True))]


def brier(log):
    return cal.brier_score(log.columns["correct"], np.array(log.columns["confidence"], dtype=float))


RIGHT_BRIER = float(np.mean((np.array(SURE) - np.array(RIGHT)) ** 2))


def test_the_known_log_has_its_brier_score(tmp_path):
    log = read_log(inspected(tmp_path, known()))
    assert (brier(log), log.notes) == (pytest.approx(RIGHT_BRIER), ())


UNITS = [
    pytest.param([*known(), sample(99, 1.2)],
                 r"\(40 numbers up to 1, 1 above 1, the first 1.2 in sample 'q99', 0 with a percent sign\)",
                 id="L1 one 1.2 among fractions"),
    pytest.param([sample(0, 1.0), sample(1, 1.0), sample(2, 90)], "mixes", id="L1 ones and one percentage"),
    pytest.param([sample(0, 0.9), sample(1, "85%")], "1 number up to 1, 0 above 1, 1 with a percent",
                 id="L2 a fraction beside a percent sign"),
    pytest.param([sample(0, 0.5), sample(1, 85), sample(2, "85%")], "1 number up to 1, 1 above 1",
                 id="L2 all three notations"),
    pytest.param([sample(0, 1), sample(1, "85%")], "mixes", id="L2 a bare 1 beside a percent sign"),
    pytest.param([sample(i, 1 + i) for i in range(10)], "values from 1 to 10, which may be percentages or a scale",
                 id="W5 a scale from 1 to 10"),
    pytest.param([sample(0, 3), sample(1, "85%")], "a scale up to 10", id="W5 a scale beside a percent sign"),
    pytest.param([*known(), sample(99, -0.1)], r"is -0.1 in sample 'q99' \(1 value", id="a negative confidence"),
    pytest.param([*known(), sample(99, 10**400)], "is inf in sample 'q99'", id="L6 ten to the power 400"),
    pytest.param([*known(), sample(99, -(10**400))], "is -inf in sample", id="L6 minus ten to the power 400"),
    pytest.param([*known(), sample(99, "9" * 190)], r"is 1e\+190 in", id="L6 190 digits as text"),
    pytest.param([sample(0, "high"), sample(1, None)], "contains no numbers", id="words only"),
]  # fmt: skip


@pytest.mark.parametrize(("samples", "said"), UNITS)
def test_confidences_without_one_unit_are_refused(tmp_path, samples, said):
    with pytest.raises(LogError, match=rf"log.json: metadata.confidence .*{said}"):
        read_log(inspected(tmp_path, samples))


PERCENT = "metadata.confidence recognized as percentages"
SAID = [
    pytest.param(known(lambda c: f"{100 * c:g}%"), PERCENT, id="all with a percent sign"),
    pytest.param(known(lambda c: round(100 * c)), PERCENT, id="all as percentages"),
    pytest.param(known(lambda c: f"{100 * c:g} %" if c > 0.8 else round(100 * c)), PERCENT, id="percent sign or bare"),
]


@pytest.mark.parametrize(("samples", "said"), SAID)
def test_a_unit_that_is_recognized_is_said(tmp_path, samples, said):
    log = read_log(inspected(tmp_path, samples))
    assert (brier(log), log.notes) == (pytest.approx(RIGHT_BRIER), (said,))


def test_l1_rounding_above_one_is_one_and_said(tmp_path):
    log = read_log(inspected(tmp_path, [*known(), sample(99, 1.0000001)]))
    assert log.columns["confidence"] == [*SURE, 1.0]
    assert log.notes == ("1 value of metadata.confidence above 1 by at most 1e-06 taken as 1",)
    with pytest.raises(LogError, match="mixes"):
        read_log(inspected(tmp_path, [*known(), sample(99, 1.000002)]))


def test_l2_less_than_one_percent(tmp_path):
    log = read_log(inspected(tmp_path, [sample(0, "0.9%"), sample(1, "1%"), sample(2, "0%")]))
    assert log.columns["confidence"] == pytest.approx([0.009, 0.01, 0.0])
    assert log.notes == (PERCENT,)


def test_samples_without_a_confidence_are_counted(tmp_path):
    log = read_log(inspected(tmp_path, [sample(0, 0.5), sample(1, "high"), sample(2, "0,9"), sample(3, float("nan"))]))
    assert log.columns["confidence"] == [0.5, None, None, None]
    assert log.notes == ("3 samples without a number in metadata.confidence: the first is 'q1', with 'high'",)


@pytest.mark.parametrize("packed", [False, True], ids=["json", "eval"])
def test_l3_an_equal_sample_again_is_counted_once_and_named(tmp_path, packed):
    again = [*known(), *[known()[3]] * 100]
    path = inspected(tmp_path, again)
    if packed:
        path = tmp_path / "log.eval"
        with zipfile.ZipFile(path, "w") as file:
            for i, one in enumerate(again):
                file.writestr(f"samples/{i}.json", json.dumps(one))
    log = read_log(path)
    assert (log.n, brier(log), log.unit) == (40, pytest.approx(RIGHT_BRIER), "")
    assert log.notes == ("100 repeated samples counted once: the first is sample 'q3', epoch 1",)


def test_l3_an_equal_sample_again_is_no_further_sampled_answer(tmp_path):
    epochs = [sample(i, 0.5, epoch=e, answer="AB"[(i + e) % 2]) for i in range(5) for e in (1, 2, 3)]
    answers, _, _ = read_log(inspected(tmp_path, [*epochs, epochs[0]]), sampled=True).sampled()
    assert [len(a) for a in answers] == [3] * 5


REFUSED = [
    pytest.param([*known(), sample(3, 0.11)], "'q3', epoch 1, occurs twice, with metadata.confidence 0.[0-9]+ and 0.11",
                 id="L3 the same epoch with another confidence"),
    pytest.param([*known(), sample(3, SURE[3], not RIGHT[3])], "occurs twice, with correct",
                 id="L3 the same epoch with another score"),
    pytest.param([sample("1", 0.5), {**sample(0, 0.7), "id": "7"}, {**sample(0, 0.6), "id": 7}], "sample '7', epoch 1,",
                 id="L3 an id as number and as text"),
    pytest.param([sample(i, 0.8) if i % 2 else sample(i, 0.3, False, scorer="other") for i in range(6)],
                 r"several scorers \(other, match\): name one with --scorer", id="L4 samples of two scorers"),
    pytest.param([{**sample(0, 0.5), "id": ["q", 0]}], r"sample number 1 has id \['q'", id="L6 an id that is a list"),
    pytest.param([{**sample(0, 0.5), "id": None}], "has id None", id="an id that is missing"),
    pytest.param([{**sample(0, 0.5), "epoch": "1"}], "epoch '1'", id="an epoch that is a text"),
    pytest.param([sample(0, 0.5), {**sample(1, None), "metadata": {"confidence": 0.9}, "scores": {"match": "C"}}],
                 "only in the metadata of 1 other", id="the confidence of a score and of a sample"),
    pytest.param([{**sample(0, 0.5), "scores": {"match": {"value": 0.5, "metadata": {"confidence": 0.5}}}}],
                 "no score of scorer 'match' is right or wrong", id="only partial scores"),
]  # fmt: skip


@pytest.mark.parametrize("named", [None, "metadata.confidence"])
@pytest.mark.parametrize(("samples", "said"), REFUSED)
def test_samples_that_may_be_read_in_two_ways_are_refused(tmp_path, samples, said, named):
    with pytest.raises(LogError, match=said):
        read_log(inspected(tmp_path, samples), prob=named)


def test_l4_a_scorer_that_some_samples_lack_is_counted(tmp_path):
    mixed = [sample(i, 0.8) if i % 2 else sample(i, 0.3, False, scorer="other") for i in range(6)]
    log = read_log(inspected(tmp_path, mixed), scorer="match")
    assert (log.n, log.columns["correct"]) == (3, [1, 1, 1])
    assert log.notes == ("3 samples without scorer 'match' left out",)
    with pytest.raises(LogError, match="no scorer 'mach': did you mean 'match'"):
        read_log(inspected(tmp_path, mixed), scorer="mach")


TEXTS = [
    pytest.param(lambda t: t + "\n" + t, "begins more text after the log: a file holds one log", id="L5 a second log"),
    pytest.param(lambda t: t[:-1] + ', "samples": []}', "its key 'samples' occurs twice", id="L5 samples twice"),
    pytest.param(lambda t: t[:-1] + ', "eval": {}}', "its key 'eval' occurs twice", id="the header twice"),
    pytest.param(lambda t: t.replace('"epoch": 1', '"epoch": 1, "epoch": 2', 1), "the key 'epoch' occurs twice in one",
                 id="a key of a sample twice"),
    pytest.param(lambda t: t.replace('"samples": [', '"samples": {"a": [') + "}", "its 'samples' is not a list",
                 id="samples that are no list"),
    pytest.param(lambda t: t.replace('"epoch": 1', '"epoch": ' + "9" * 5000, 1), "a number has thousands of digits",
                 id="L6 a number of 5,000 digits"),
    pytest.param(lambda t: t.replace('"epoch": 1', '"deep": ' + "[" * 200_000 + "]" * 200_000, 1), "nested too deeply",
                 id="L7 200,000 nested lists"),
    pytest.param(lambda t: t[:-1] + "]", "cut off or is damaged", id="a wrong bracket at the end"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "said"), TEXTS)
def test_a_text_that_is_not_one_log_is_refused(tmp_path, change, said):
    with pytest.raises(LogError, match=said):
        read_log(inspected(tmp_path, known(), change))


def test_l5_samples_that_are_no_objects_are_counted(tmp_path):
    log = read_log(inspected(tmp_path, [*known(), 7, "q", None, []]))
    assert (log.n, brier(log)) == (40, pytest.approx(RIGHT_BRIER))
    assert log.notes == ("4 samples without fields (not an object) left out",)


def test_l6_latin_1_bytes_are_refused_in_one_sentence(tmp_path):
    path = inspected(tmp_path, [sample(0, 0.5, answer="caf_")])
    path.write_bytes(path.read_bytes().replace(b"caf_", b"caf\xe9"))
    with pytest.raises(LogError, match=r"it is not UTF-8 text at .*: save it as UTF-8"):
        read_log(path)
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as file:
        file.writestr("samples/a.json", b'{"id": "\xe9"}')
    with pytest.raises(LogError, match=r"in its member 'samples/a.json', it is not UTF-8 text at byte 8"):
        read_log(tmp_path / "a.eval")


def test_the_recorded_accuracy_and_number_of_samples_are_said_where_they_differ(tmp_path):
    def results(accuracy, n=40):
        score = {"name": "match", "metrics": {"accuracy": {"value": accuracy}}}
        return {"results": {"completed_samples": n, "scores": [score]}}

    own = float(np.mean(RIGHT))
    assert read_log(inspected(tmp_path, known(), **results(own))).notes == ()
    assert read_log(inspected(tmp_path, known(), **results(0.5, 41))).notes == (
        "the log records 41 completed samples and contains 40",
        f"the log records an accuracy of 0.5, and these scores have {own:.3g}",
    )
    assert read_log(inspected(tmp_path, known(), **results(10**400, 10**400))).notes == ()


def test_answers_that_are_no_texts_are_compared_as_texts(tmp_path):
    epochs = [sample(0, 0.5, epoch=e, answer=a) for e, a in enumerate([1, "1", ["a"], ["a"]], 1)]
    answers, _, _ = read_log(inspected(tmp_path, epochs), sampled=True).sampled()
    assert answers == [["1", "1", '["a"]', '["a"]']]


def test_metrics_of_inspect_do_not_mix_units(monkeypatch):
    """With modules in place of Inspect's own, which may not be installed."""
    from types import ModuleType, SimpleNamespace

    fake = ModuleType("inspect_ai.scorer")
    fake.Metric, fake.SampleScore, fake.metric = object, object, lambda made: made
    monkeypatch.setitem(sys.modules, "inspect_ai", ModuleType("inspect_ai"))
    monkeypatch.setitem(sys.modules, "inspect_ai.scorer", fake)
    monkeypatch.delitem(sys.modules, "calibrary.inspect_ai", raising=False)
    from calibrary.inspect_ai import brier as metric

    monkeypatch.delitem(sys.modules, "calibrary.inspect_ai")

    def scores(samples):
        return [SimpleNamespace(score=SimpleNamespace(**s["scores"]["match"]), sample_id=s["id"]) for s in samples]

    assert metric()(scores(known()))["bs"] == pytest.approx(RIGHT_BRIER)
    assert metric()(scores(known(lambda c: f"{100 * c:g}%")))["bs"] == pytest.approx(RIGHT_BRIER)
    with pytest.warns(cal.CalibrationWarning, match=r"mixes fractions and percentages .*'q99'"):
        assert np.isnan(metric()(scores([*known(), sample(99, 1.2)]))["bs"])
    with pytest.warns(cal.CalibrationWarning, match="1 of 41 scores are left out"):
        assert metric()(scores([*known(), sample(99, "high")]))["bs"] == pytest.approx(RIGHT_BRIER)
    assert np.isnan(metric()([])["bs"])


# -- bounds ------------------------------------------------------------------------------------------------


def bomb(path, what):
    """A log with one sample of so many bytes of brackets or letters."""
    unit = {"brackets": b"[],", "letters": b"xyz"}[what[0]]
    open_, close = {"brackets": (b'{"id": 1, "x": [', b"0]}"), "letters": (b'{"id": 1, "x": "', b'"}')}[what[0]]
    data = open_ + unit * (what[1] // 3) + close
    if path.suffix == ".eval":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("samples/a.json", data)
    else:
        path.write_bytes(b'{"version": 2, "status": "success", "eval": {}, "samples": [' + data + b"]}")
    return path


BOMBS = [
    pytest.param("a.eval", ("brackets", 135_000_000), "claims 129 MiB, and at most 128 MiB", id="L7 eval of 129 MiB"),
    pytest.param("a.eval", ("brackets", 30_000_000), "more than 4,000,000 commas", id="L7 eval of brackets"),
    pytest.param("a.json", ("brackets", 30_000_000), "more than 4,000,000 commas", id="L7 json of brackets"),
    pytest.param("a.json", ("letters", 135_000_000), "longer than 128 MiB", id="L7 json of one text"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "what", "said"), BOMBS)
def test_a_sample_beyond_the_bounds_is_refused_in_little_memory(tmp_path, name, what, said):
    path = bomb(tmp_path / name, what)
    code = (
        "import resource, sys; from calibrary.language import read_log\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: read_log(sys.argv[1])\n"
        "except ValueError as error: print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    out = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True).stdout
    sentence, used = out.strip().splitlines()
    assert said in sentence
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(used) * unit < 800 << 20, f"{int(used) * unit >> 20} MiB"


def test_l7_a_large_sample_within_the_bounds_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "MOST_MARKS", 1000)
    large = {**sample(0, 0.5), "events": [[]] * 480}
    assert read_log(inspected(tmp_path, [large] * 1 + known()[1:])).n == 40
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as file:
        file.writestr("samples/a.json", json.dumps(large))
    assert read_log(tmp_path / "a.eval").n == 1
    with zipfile.ZipFile(tmp_path / "b.eval", "w") as file:
        file.writestr("samples/a.json", json.dumps({**large, "more": [[]] * 50}))
    with pytest.raises(
        LogError, match=r"in its member 'samples/a.json', one sample or value has more than 1,000 commas"
    ):
        read_log(tmp_path / "b.eval")


@pytest.mark.parametrize("text", ['[{{"y": [{}]}}]', '{{"y": [{}]}}', '{{"y": 1, "p": 0.5}}\n{{"y": [{}]}}'],
                         ids=["list", "object", "second line"])  # fmt: skip
def test_s5_brackets_in_a_packed_json_file_are_refused(tmp_path, monkeypatch, text):
    from calibrary.cli.read import read_predictions
    from calibrary.tables import json_files as files
    from calibrary.tables.sources import InputError

    monkeypatch.setattr(files, "_MOST_MARKS", 1000)
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(text.format("[]," * 2000 + "0").encode()))
    # of a list one object after the other is read, within the bound of a stream, which other tests hold
    said = "one value is expected" if text[0] == "[" else "more than 1,000 commas and brackets in one value: save one"
    with pytest.raises(InputError, match=said):
        read_predictions(path)
    rows = [{"y": i % 2, "p": 0.5} for i in range(2000)]
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))  # many lines, each within the bound
    assert len(read_predictions(path).y) == 2000
    (tmp_path / "b.json").write_text(json.dumps(rows))  # not packed
    assert len(read_predictions(tmp_path / "b.json").y) == 2000


# -- lm-evaluation-harness ---------------------------------------------------------------------------------


def questions(n=60, kind="", keys=("acc",), seed=0):
    """Questions of four options and known labels; the recorded accuracies follow the harness's own rules."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        scores = rng.normal(0, 2, 4) - 20
        chance = np.exp(scores - scores.max())
        right = int(rng.choice(4, p=chance / chance.sum()))
        options = (
            [str(x) for x in rng.permutation(4)] if kind == "digits" else [c * (j + 1) for j, c in enumerate("abcd")]
        )
        by = {"acc": scores, "acc_norm": scores / [len(o) for o in options]}
        target = {"digits": options[right], "from 1": right + 1, "text": options[right]}.get(kind, right)
        yield {"doc_id": i, "doc": {"choices": options}, "target": target,
               "arguments": [["c", f" {o}"] for o in options],
               "filtered_resps": [[float(s), False] for s in scores], "label": right,
               **{key: float(by[key].argmax() == right) for key in keys}}  # fmt: skip


def written(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    return path


RUN = "samples_t_2026-11-16T10-00-00.0.jsonl"


def test_a_copy_of_a_file_under_a_browsers_name_is_another_run(tmp_path):
    written(tmp_path / RUN, questions())
    written(tmp_path / RUN.replace(".jsonl", " (1).jsonl"), questions())
    with pytest.raises(LogError, match="has 2 runs of task t "):
        read_log(tmp_path)


def test_a_packed_file_beside_the_samples_is_said_to_be_left_out(tmp_path):
    written(tmp_path / RUN, questions())
    packed = tmp_path / "samples_u_2026-11-16T10-00-00.0.jsonl.gz"
    packed.write_bytes(gzip.compress(b"{}\n"))
    assert read_log(tmp_path).notes == (f"{packed} left out: it is not a file of samples",)


def test_fewer_log_likelihoods_than_options_are_refused(tmp_path):
    records = list(questions())
    records[3]["filtered_resps"].pop()
    with pytest.raises(LogError, match="line 4 has 3 log-likelihoods for 4 requests: check that the line is whole"):
        read_log(written(tmp_path / RUN, records))


def test_a_zip_file_that_lists_fewer_members_than_its_end_records_is_refused(tmp_path):
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": {"task": "t"}}))
        for i, each in enumerate(known()):
            packed.writestr(f"samples/q{i}_epoch_1.json", json.dumps(each))
    assert brier(read_log(path)) == pytest.approx(RIGHT_BRIER)
    whole = bytearray(path.read_bytes())
    end = whole.rfind(b"PK\x05\x06")
    for at in (end + 8, end + 10):
        whole[at : at + 2] = (42).to_bytes(2, "little")
    path.write_bytes(whole)
    with pytest.raises(LogError, match="its list has 41 members and its end says 42: it is damaged"):
        read_log(path)


def labels(path, records, **options):
    """The labels that are read, which must be the known ones."""
    records = list(records)
    log = read_log(written(path, records), **options)
    assert log.columns["label"] == [r["label"] for r in records]
    return log


@pytest.mark.parametrize("keys", [("acc",), ("acc_norm",), ("acc", "acc_norm"), ()], ids="-".join)
@pytest.mark.parametrize("kind", ["", "text"], ids=["numbers", "texts"])
def test_the_known_questions_have_their_labels(tmp_path, kind, keys):
    for normalize in ("none", "length"):
        assert labels(tmp_path / RUN, questions(kind=kind, keys=keys), normalize=normalize).notes == ()


@pytest.mark.parametrize("key", ["acc", "acc_norm"])
def test_h3_options_that_are_digits_follow_every_recorded_accuracy(tmp_path, key):
    log = labels(tmp_path / RUN, questions(kind="digits", keys=(key,)))
    assert log.notes == ("targets taken as the texts of options: as numbers they contradict the accuracy",)
    numbers = [{**q, "target": str(q["label"])} for q in questions(kind="digits", keys=(key,))]
    log = labels(tmp_path / RUN, numbers)
    assert log.notes == ("targets taken as the numbers of options: as texts they contradict the accuracy",)


def test_h1_two_runs_of_a_task_are_refused(tmp_path):
    written(tmp_path / "m" / RUN, questions())
    second = written(tmp_path / "m" / RUN.replace("16T", "17T"), questions())
    with pytest.raises(LogError, match=rf"has 2 runs of task t \(.*{RUN}, .*17T.*\): pass one of these files"):
        read_log(tmp_path / "m")
    assert read_log(second).n == 60


def test_h1_two_models_are_refused(tmp_path):
    written(tmp_path / "m1" / RUN, questions())
    written(tmp_path / "m2" / RUN.replace("_t_", "_u_"), questions(seed=1))
    with pytest.raises(LogError, match=r"samples of several models \(folders m1, m2\): pass the folder of one"):
        read_log(tmp_path)
    assert read_log(tmp_path / "m2").n == 60


def test_h1_tasks_of_two_runs_are_said(tmp_path):
    written(tmp_path / RUN, questions())
    written(tmp_path / RUN.replace("_t_", "_u_").replace("16T", "17T"), questions())
    (tmp_path / "samples_v.jsonl").write_text("not a log\n")
    log = read_log(tmp_path)
    assert (log.n, log.by) == (120, "task")
    assert log.notes == (
        "the tasks are from 2 runs (2026-11-16T10-00-00.0, 2026-11-17T10-00-00.0)",
        f"{tmp_path / 'samples_v.jsonl'} left out: it is not a file of samples",
    )


def test_h2_filters_are_chosen_and_never_pooled(tmp_path):
    both = [{**q, "filter": f, "filtered_resps": q["filtered_resps"][:: 1 if f == "a" else -1]}
            for q in questions(keys=()) for f in "ab"]  # fmt: skip
    path = written(tmp_path / RUN, both)
    with pytest.raises(LogError, match=r"has several filters \(a, b\): name one with --scorer"):
        read_log(path)
    log = read_log(path, scorer="a")
    assert log.columns["label"] == [q["label"] for q in questions()]
    assert log.notes == ("60 lines of other filters left out",)
    with pytest.raises(LogError, match="has no filter 'c'"):
        read_log(path, scorer="c")


def test_h2_an_equal_line_again_is_counted_once_and_a_different_one_refused(tmp_path):
    all_ = list(questions())
    log = read_log(written(tmp_path / RUN, [*all_, *all_[:7]]))
    assert (log.n, log.notes) == (60, ("7 repeated lines counted once: the first is question 0",))
    for other in ({**all_[5], "target": 3 - all_[5]["target"]}, {**all_[5], "doc_id": "5"}):
        with pytest.raises(LogError, match=r"line 61 has question '?5'? again, and line 6 differs"):
            read_log(written(tmp_path / RUN, [*all_, other]))


def of_one(**change):
    """All questions, the eighth of them changed."""
    return [{**q, **change} if i == 7 else q for i, q in enumerate(questions())]


LINES = [
    pytest.param([q for q in questions(kind="from 1") if q["target"] < 4],
                 r"records an accuracy \(acc\) of 0.6\d+, and it is 0.\d+ if its targets are the numbers of options "
                 r"\(\d+ of \d+ questions differ, the first is \d+\): check the targets",
                 id="H4 targets that count from 1"),
    pytest.param(of_one(acc=1 - list(questions())[7]["acc"]), r"1 of 60 questions differ, the first is 7",
                 id="H4 one question contradicts"),
    pytest.param([{**q, "acc": 0} for q in questions()], r"\(acc\) of 0, and it is 0", id="H4 right ones as wrong"),
    pytest.param(questions(kind="digits", keys=()), "may be one of the texts or of the numbers of its options: log acc",
                 id="H3 digits without any accuracy"),
    pytest.param(of_one(acc=0.37), "line 8 has acc = 0.37, neither 0 nor 1: a question with several right answers",
                 id="H5 a fractional accuracy"),
    pytest.param(of_one(acc="half"), "line 8 has acc = 'half'", id="an accuracy that is a word"),
    pytest.param(of_one(target=[0, 2]), r"line 8 has the target \[0, 2\]: use a task with one right answer",
                 id="H5 several right answers"),
    pytest.param(of_one(target="[0, 2]"), "the target of question 7 is neither", id="H5 several right answers as text"),
    pytest.param(of_one(target=0.5), "the target of question 7 is neither", id="H5 a fractional target"),
    pytest.param(of_one(target="bb"), "the target of question 7 is not one of the numbers of its", id="one text"),
    pytest.param(of_one(filtered_resps=[[0.7, 0], [0.1, 0], [0.1, 0], [0.1, 0]]), "line 8 .* log-likelihood 0.7:",
                 id="H6 probabilities for log-likelihoods"),
    pytest.param(of_one(filtered_resps=[[10**400, 0], [-1, 0], [-1, 0], [-1, 0]]), "line 8 contains .* is expected",
                 id="L6 a log-likelihood of ten to the power 400"),
    pytest.param(of_one(doc_id=[7]), r"line 8 has doc_id \[7\]: it must be", id="L6 an id that is a list"),
    pytest.param(of_one(doc_id=None), "line 8 has doc_id None", id="an id that is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("records", "said"), LINES)
def test_questions_that_may_be_read_in_two_ways_are_refused(tmp_path, records, said):
    with pytest.raises(LogError, match=said):
        read_log(written(tmp_path / RUN, records))


def test_h6_a_length_without_texts_is_refused(tmp_path):
    bare = [{k: v for k, v in q.items() if k != "arguments"} for q in questions()]
    labels(tmp_path / RUN, bare)
    with pytest.raises(LogError, match="line 1 has no texts of its options: leave --normalize length out"):
        read_log(tmp_path / RUN, normalize="length")


def test_an_accuracy_by_another_rule_is_said(tmp_path):
    """acc_norm of another measure of length: both numbers are said; it is refused if that rule was asked for."""
    other = [{**q, "acc_norm": 1.0} for q in questions(keys=("acc",))]
    (note,) = labels(tmp_path / RUN, other).notes
    assert note.startswith("the log records an accuracy (acc_norm) of 1, and it is 0.")
    with pytest.raises(LogError, match=r"accuracy \(acc_norm\) of 1, and it is 0"):
        read_log(tmp_path / RUN, normalize="length")


def test_options_with_equal_log_likelihoods_agree_with_either_record(tmp_path):
    equal = [[-1.0, 0], [-1.0, 0], [-2.0, 0], [-3.0, 0]]
    for target in (0, 1):
        for acc in (0.0, 1.0):
            records = of_one(filtered_resps=equal, target=target, acc=acc)
            assert read_log(written(tmp_path / RUN, records)).columns["label"][7] == target
    with pytest.raises(LogError, match="the first is 7"):
        read_log(written(tmp_path / RUN, of_one(filtered_resps=equal, target=2, acc=1.0)))


def test_l6_lines_that_are_no_json_in_utf_8_are_refused(tmp_path):
    path = written(tmp_path / RUN, questions())
    good = path.read_bytes()
    lines = {
        b'{"doc_id": 60, "doc": "\xe9"}': "not UTF-8 text at byte 23",
        b'{"a": 1, "a": 2}': "'a' occurs twice",
        b'{"a": ' + b"9" * 5000 + b"}": "thousands of digits",
        b"{} {}": "more text follows",
    }
    for line, said in lines.items():
        path.write_bytes(good + line + b"\n")
        with pytest.raises(LogError, match=f"line 61 cannot be read: .*{said}"):
            read_log(path)


def test_a_log_is_not_divided_by_one_hundred_twice(tmp_path):
    from calibrary.cli.read import read_predictions
    from calibrary.tables.sources import InputError

    path = inspected(tmp_path, known(lambda c: f"{100 * c:g}%"))
    assert cal.brier_score(read_predictions(path).predictions()) == pytest.approx(RIGHT_BRIER)
    for option in ("percent", "logits"):
        with pytest.raises(InputError, match=f"is a log, whose unit is recognized: leave --{option} out"):
            read_predictions(path, **{option: True})
