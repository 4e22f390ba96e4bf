"""Logs of lm-evaluation-harness and Inspect: the stored ones, what is said, and what is refused."""

from __future__ import annotations

import io
import json
import struct
import sys
import zipfile
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest

import calibrary as cal
from calibrary.cli.read import read_predictions
from calibrary.language import inspect_log as packed
from calibrary.language import read_log, stream
from calibrary.tables.json_files import JsonStream, UnreadableError
from paths import ROOT

LOGS = ROOT / "tests" / "data" / "logs"


def unpacked(path):
    """The members of a stored log, by name."""
    with packed.opened(path) as members:
        return dict(members(""))


def written(path, samples, **header):
    """An Inspect log with these samples, packed with deflate, as older versions write it."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for sample in samples:
            file.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        file.writestr("header.json", json.dumps({"status": "success", "eval": {"task": "sums"}, **header}))
    return path


def sample(i, value="C", epoch=1, scorer="match", answer="7", **metadata):
    return {"id": f"q{i}", "epoch": epoch, "metadata": {"topic": "even" if i % 2 else "odd"},
            "scores": {scorer: {"value": value, "answer": answer, "metadata": metadata}}}  # fmt: skip


def question(i, scores=(-1.0, -2.0), target="0", **more):
    return {"doc_id": i, "doc": {"question": "?", "choices": ["a", "bb"], "subject": "law"}, "target": target,
            "arguments": {f"gen_args_{j}": {"arg_0": "?", "arg_1": f" {t}"} for j, t in enumerate(["a", "bb"])},
            "filtered_resps": [[str(s), "False"] for s in scores], **more}  # fmt: skip


def lines(path, records):
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    return path


def predictions(log):
    y = np.array(log.columns["correct"])
    return y, np.array(log.columns["confidence"], dtype=float)


# -- the stored logs ---------------------------------------------------------------------------------------


def test_the_stored_inspect_log():
    pytest.importorskip("zstandard")
    log = read_log(LOGS / "inspect_sums.eval")
    y, c = predictions(log)
    assert cal.brier_score(y, c) == pytest.approx(0.2064133333, abs=1e-10)
    assert y.mean() == pytest.approx(0.58333, abs=1e-5)
    assert log.said == "Inspect, task sums, 60 questions, scorer verbal_score, confidence from metadata.confidence"
    assert set(log.columns["topic"]) == {"odd", "even"}
    assert (log.unit, log.by, log.notes) == ("", "", ())


def test_the_stored_inspect_log_as_json():
    log = read_log(LOGS / "inspect_sums.json")
    whole = json.loads((LOGS / "inspect_sums.json").read_text())
    y, c = predictions(log)
    assert y.tolist() == [s["scores"]["verbal_score"]["value"] == "C" for s in whole["samples"]]
    assert c.tolist() == [s["scores"]["verbal_score"]["metadata"]["confidence"] for s in whole["samples"]]
    assert y.mean() == pytest.approx(whole["results"]["scores"][0]["metrics"]["accuracy"]["value"])


def test_the_stored_log_of_the_harness():
    log = read_log(LOGS / "lm_eval_samples.jsonl")
    p = np.column_stack([log.columns[f"p{j}"] for j in range(4)])
    y = np.array(log.columns["label"])
    assert 4 * cal.brier_score(y, p) == pytest.approx(0.7707100219, abs=1e-10)
    assert cal.negative_log_likelihood(y, p) == pytest.approx(1.4228245119, abs=1e-10)
    assert log.said.endswith("80 questions of 4 options, probabilities by softmax of log-likelihoods")
    stored = [json.loads(line) for line in (LOGS / "lm_eval_samples.jsonl").read_text().splitlines()]
    assert ((p.argmax(axis=1) == y) == [r["acc"] for r in stored]).all()
    divided = read_log(LOGS / "lm_eval_samples.jsonl", normalize="length")
    best = np.column_stack([divided.columns[f"p{j}"] for j in range(4)]).argmax(axis=1)
    assert ((best == y) == [r["acc_norm"] for r in stored]).all()


def test_the_stored_epochs_are_sampled_answers():
    pytest.importorskip("zstandard")
    log = read_log(LOGS / "inspect_epochs.eval", sampled=True)
    answers, right, ids = log.sampled()
    assert (len(ids), {len(a) for a in answers}, log.unit) == (60, {5}, "id")
    found = cal.sampled_answers(answers, right, rng=0)
    assert found.value == pytest.approx(0.0916667, abs=1e-7)
    assert found.pvalue == pytest.approx(0.54, abs=0.03)
    assert found.expected_by_chance == pytest.approx(0.099, abs=0.002)
    assert found.brier == pytest.approx(0.2055556, abs=1e-7)
    assert found.naive_brier == pytest.approx(0.2541667, abs=1e-7)
    assert (found.accuracy, found.mean_confidence) == (pytest.approx(0.55), pytest.approx(0.6166667, abs=1e-7))
    with pytest.raises(
        ValueError, match=r"contains no confidence of the model: .*calibrary answers.*Score\(value=.*confidence"
    ):
        read_log(LOGS / "inspect_epochs.eval")


def test_a_deflated_log_says_the_same_as_one_of_zstandard(tmp_path):
    pytest.importorskip("zstandard")
    with zipfile.ZipFile(tmp_path / "old.eval", "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in unpacked(LOGS / "inspect_sums.eval").items():
            file.writestr(name, data)
    assert read_log(tmp_path / "old.eval").columns == read_log(LOGS / "inspect_sums.eval").columns


def test_without_zstandard_one_sentence_says_what_to_install(monkeypatch):
    if sys.version_info >= (3, 14):
        pytest.skip("does not apply: Python reads zstandard itself")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs zstandard: pip install 'calibrary\[logs\]'"):
        read_log(LOGS / "inspect_sums.eval")


# -- Inspect: scores, scorers, confidences ------------------------------------------------------------------


def test_values_of_scores_and_confidences_as_percentages(tmp_path):
    rows = [sample(0, "C", confidence=90), sample(1, "I", confidence="25%"), sample(2, 1.0, confidence=1),
            sample(3, "N", confidence=40), sample(4, False, confidence=3)]  # fmt: skip
    log = read_log(written(tmp_path / "a.eval", rows))
    assert log.columns["correct"] == [1, 0, 1, 0, 0]
    assert log.columns["confidence"] == [0.9, 0.25, 0.01, 0.4, 0.03]
    assert log.notes == ("metadata.confidence recognized as percentages",)


def test_fields_of_the_data_set_never_replace_what_the_model_said(tmp_path):
    strange = {"id": "x", "epoch": 9, "correct": 0, "answer": "no", "confidence": 0.1, "metadata.confidence": 0.2}
    rows = [{**sample(i, "C", confidence=(7 + i) / 10), "metadata": strange} for i in range(3)]
    found = read_log(written(tmp_path / "a.eval", rows)).columns
    assert {name: list(found[name]) for name in (*strange, "metadata.metadata.confidence")} == {
        "id": ["q0", "q1", "q2"], "epoch": [1] * 3, "correct": [1] * 3, "answer": ["7"] * 3,
        "confidence": [0.7, 0.8, 0.9], "metadata.confidence": [0.7, 0.8, 0.9],
        "metadata.metadata.confidence": [0.2] * 3,
    }  # fmt: skip


def test_a_confidence_can_be_named_and_a_scorer_chosen(tmp_path):
    rows = [sample(i, "C", sure=0.7) for i in range(3)]
    for row in rows:
        row["scores"]["other"] = {"value": "I", "metadata": {"confidence": 0.1}}
    path = written(tmp_path / "a.eval", rows)
    with pytest.raises(ValueError, match=r"has several scorers \(match, other\): name one with --scorer"):
        read_log(path)
    assert read_log(path, scorer="match", prob="metadata.sure").columns["confidence"] == [0.7] * 3
    assert read_log(path, scorer="other").columns["correct"] == [0] * 3
    with pytest.raises(ValueError, match=r"no scorer 'mach': did you mean 'match'"):
        read_log(path, scorer="mach")
    with pytest.raises(ValueError, match=r"no 'metadata.confidance'"):
        read_log(path, scorer="other", prob="metadata.confidance")


def test_errors_missing_scores_and_partial_ones_are_counted(tmp_path):
    rows = [sample(i, "C", confidence=0.5) for i in range(4)]
    rows += [
        {**sample(4), "error": {"message": "timeout"}},
        {**sample(5), "scores": None},
        sample(6, "P", confidence=1),
    ]
    log = read_log(written(tmp_path / "a.eval", rows, status="error"))
    assert log.notes == (
        "1 sample with an error left out", "1 sample without scores left out", "1 score neither right nor wrong",
        "the status of the log is 'error': more samples may be missing",
    )  # fmt: skip
    assert log.columns["correct"] == [1, 1, 1, 1, None]


REFUSED = [
    ([], {}, "contains no samples: run the task with log_samples"),
    ([], {"status": "started"}, r"contains no samples \(its status is 'started'\)"),
    (
        [{**sample(0), "scores": {}}] * 1,
        {},
        r"has no scores \(1 sample without scores\): score it first, with inspect score",
    ),
    ([sample(0, {"a": 1})], {}, "gives several values"),
    ([sample(0, confidence="high")], {}, "metadata.confidence contains no numbers"),
    ([sample(0, confidence=0.2, prob=0.3)], {}, "has several confidences"),
]


@pytest.mark.parametrize(("rows", "header", "said"), REFUSED)
def test_a_log_that_cannot_serve_is_refused_in_one_sentence(tmp_path, rows, header, said):
    with pytest.raises(ValueError, match=said):
        read_log(written(tmp_path / "a.eval", rows, **header))


def test_epochs_without_answers_are_refused(tmp_path):
    rows = [sample(0, epoch=e, answer=None) for e in (1, 2, 3)]
    with pytest.raises(ValueError, match=r"sample 'q0', epoch 1, has no answer"):
        read_log(written(tmp_path / "a.eval", rows), sampled=True).sampled()
    with pytest.raises(ValueError, match="one answer for each question: run the task with several epochs"):
        read_log(written(tmp_path / "b.eval", [sample(0), sample(1)]), sampled=True).sampled()


# -- hostile and damaged files ------------------------------------------------------------------------------


def test_a_log_that_was_cut_off_is_refused(tmp_path):
    whole = written(tmp_path / "a.eval", [sample(i, confidence=0.5) for i in range(30)]).read_bytes()
    for size in (10, len(whole) // 2, len(whole) - 5):
        (tmp_path / "cut.eval").write_bytes(whole[:size])
        with pytest.raises(ValueError, match="cut off"):
            read_log(tmp_path / "cut.eval")
    text = (LOGS / "inspect_sums.json").read_text()
    for size in (len(text) // 2, len(text) - 2):
        (tmp_path / "cut.json").write_text(text[:size])
        with pytest.raises(ValueError, match="it was cut off or is damaged"):
            read_log(tmp_path / "cut.json")


def test_damaged_members_are_refused(tmp_path):
    pytest.importorskip("zstandard")
    data = bytearray((LOGS / "inspect_sums.eval").read_bytes())
    with zipfile.ZipFile(LOGS / "inspect_sums.eval") as file:
        info = file.getinfo("samples/q1_epoch_1.json")
    for offset in (60, 200):
        broken = bytearray(data)
        broken[info.header_offset + offset] ^= 0xFF
        (tmp_path / "broken.eval").write_bytes(broken)
        with pytest.raises(ValueError, match=r"'samples/q1_epoch_1.json' (is damaged|has no header)"):
            read_log(tmp_path / "broken.eval")


def test_bombs_are_refused_before_they_are_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("samples/a_epoch_1.json", b"0" * 3_000_000)
    monkeypatch.setattr(packed, "MOST_SIZE", 1 << 20)
    with pytest.raises(ValueError, match="claims 3 MiB, and at most 1 MiB is possible: log fewer fields"):
        read_log(path)
    monkeypatch.setattr(packed, "MOST_SIZE", 1 << 27)
    monkeypatch.setattr(packed, "_MOST_TOTAL", 1_000_000)
    monkeypatch.setattr(packed, "_MOST_RATIO", 100)
    with pytest.raises(ValueError, match="claims to unpack to"):
        read_log(path)


def test_a_member_that_lies_about_its_size_is_refused(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    if sys.version_info >= (3, 14):
        pytest.skip("does not apply: Python reads zstandard itself")
    bomb, claimed = zstandard.ZstdCompressor().compress(b"0" * 10_000_000), 100
    name = b"samples/a_epoch_1.json"
    local = b"PK\x03\x04" + struct.pack("<HHHHHIIIHH", 63, 0, 93, 0, 33, 0, len(bomb), claimed, len(name), 0) + name
    central = b"PK\x01\x02" + struct.pack(
        "<HHHHHHIIIHHHHHII", 63, 63, 0, 93, 0, 33, 0, len(bomb), claimed, len(name), 0, 0, 0, 0, 0, 0
    )
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central + name), len(local) + len(bomb), 0)
    (tmp_path / "lie.eval").write_bytes(local + bomb + central + name + end)
    with pytest.raises(ValueError, match="size or checksum differ"):
        read_log(tmp_path / "lie.eval")


def test_names_of_members_are_never_paths(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as file:
        file.writestr("samples/../../../escape.json", json.dumps(sample(0, confidence=0.5)))
        file.writestr("header.json", json.dumps({"eval": {"task": "<script>"}}))
    log = read_log(tmp_path / "a.eval")
    assert log.columns["id"] == ["q0"]
    assert "<script>" in log.said
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.eval"]


def test_a_stream_of_json_is_the_whole_of_it(monkeypatch):
    found = {"a": 1, "samples": [{"x": [1, "]}"]}, 2.5, "t,e", None, []], "b": {"samples": [1]}, "c": []}
    for chunk in (1, 3, 17):
        monkeypatch.setattr(stream, "_CHUNK", chunk)
        items = list(JsonStream(io.StringIO(json.dumps(found, indent=1))).items("samples"))
        assert [v for k, v in items if k == "samples"] == found["samples"]
        assert {k: v for k, v in items if k != "samples"} == {k: found[k] for k in ("a", "b", "c")}
    monkeypatch.setattr(stream, "MOST_SIZE", 1 << 20)
    with pytest.raises(UnreadableError, match="longer than 1 MiB"):
        list(JsonStream(io.StringIO('{"a": "' + "x" * 4_000_000 + '"}')).items("samples"))
    for bad in (
        '{"a" 1}',
        '{"a": [1,,2]}',
        '{"samples": [1 2]}',
        "[1]",
        '{"samples": [1',
        '{"a": 1]',
        '{"samples": [1}}',
    ):
        with pytest.raises(UnreadableError, match=r"cut off or is damaged: character \d"):
            list(JsonStream(io.StringIO(bad)).items("samples"))


# -- the harness ------------------------------------------------------------------------------------------


def test_targets_are_numbers_texts_or_letters_of_options(tmp_path):
    for target in ("1", 1, "bb", " bb", "B"):
        log = read_log(lines(tmp_path / "a.jsonl", [question(0, target=target), question(1, target=target)]))
        assert log.columns["label"] == [1, 1]
    with pytest.raises(ValueError, match="the target of question 0 is neither the number nor the text"):
        read_log(lines(tmp_path / "a.jsonl", [question(0, target="zebra")]))


def test_the_accuracy_decides_where_a_target_can_be_a_number_or_a_text(tmp_path):
    record = question(0, scores=(-1.0, -2.0), target="1", acc=1.0)
    record["doc"]["choices"] = ["1", "0"]
    record["arguments"] = {"g0": {"arg_0": "?", "arg_1": " 1"}, "g1": {"arg_0": "?", "arg_1": " 0"}}
    assert read_log(lines(tmp_path / "a.jsonl", [record])).columns["label"] == [0]
    record["acc"] = 0.0
    assert read_log(lines(tmp_path / "a.jsonl", [record])).columns["label"] == [1]


def test_a_folder_of_tasks_is_split_by_task(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    lines(folder / "samples_arc_2026-11-16T10-00-00.123.jsonl", [question(i) for i in range(3)])
    three = [question(i, scores=(-1.0, -2.0, -0.5), target="2", arguments=None) for i in range(2)]
    lines(folder / "samples_mmlu_law_2026-11-16T10-00-00.123.jsonl", three)
    (folder / "results_2026-11-16T10-00-00.json").write_text("{}")
    log = read_log(folder)
    assert log.by == "task"
    assert log.columns["task"] == ["arc"] * 3 + ["mmlu_law"] * 2
    assert log.columns["correct"] == [1] * 5
    assert log.columns["confidence"][3] == pytest.approx(np.exp(-0.5) / np.exp([-1.0, -2.0, -0.5]).sum())
    assert "tasks arc, mmlu_law, 5 questions of different numbers of options" in log.said


HARNESS = [
    ({"filtered_resps": ["some text"]}, "a task that generates text, which has no probability: .*verbal_confidence"),
    ({"filtered_resps": [["some text", "other"]]}, "a task that generates text"),
    ({"filtered_resps": [["-1.0", "True"]]}, "the log-likelihood of one text only"),
    ({"filtered_resps": []}, "contains no responses"),
    ({"filtered_resps": [["nan", "True"], ["-1", "True"]]}, "a log-likelihood that is not a number"),
    ({"filtered_resps": [[{}], [{}]]}, "where a log-likelihood is expected"),
]


@pytest.mark.parametrize(("changed", "said"), HARNESS)
def test_a_line_without_probabilities_is_refused_with_its_number(tmp_path, changed, said):
    path = lines(tmp_path / "samples_t.jsonl", [question(0), {**question(1), **changed}])
    with pytest.raises(ValueError, match=f"line 2 .*{said}"):
        read_log(path)


def test_a_file_of_the_harness_that_was_cut_off_is_refused(tmp_path):
    path = lines(tmp_path / "samples_t.jsonl", [question(i) for i in range(3)])
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match=r"line 3 cannot be read: it is not JSON .*the file was cut off there"):
        read_log(path)


def test_what_is_no_log_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"y": 1, "p": 0.5}\n')
    with pytest.raises(ValueError, match="is not a log: lm-evaluation-harness writes"):
        read_log(tmp_path / "a.jsonl")
    with pytest.raises(ValueError, match="no such file"):
        read_log(tmp_path / "none.eval")
    with pytest.raises(ValueError, match="normalize='words' is not known"):
        read_log(tmp_path / "a.jsonl", normalize="words")


# -- through the commands ---------------------------------------------------------------------------------


def command(*words):
    """Run the command line in this process."""
    from calibrary.cli.main import main

    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(io.StringIO()) as err,
    ):
        patch.setattr("sys.argv", ["calibrary", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
    return ended.value.code or 0, out.getvalue(), " ".join(err.getvalue().split())


def test_commands_read_logs_and_say_what_was_read(tmp_path):
    pytest.importorskip("zstandard")
    status, out, err = command("metric", "bs", LOGS / "inspect_sums.eval")
    assert (status, out.split()) == (0, ["bs", "0.2064133333"])
    assert "Inspect, task sums, 60 questions" in err
    assert "guessed" not in err
    status, _, err = command("metric", "bs", LOGS / "inspect_sums.eval", "--normalize", "length")
    assert (status, "--normalize applies to logs of lm-evaluation-harness only" in " ".join(err.split())) == (2, True)
    a, b = (lines(tmp_path / f"{n}.jsonl", [question(i, scores=(-1.0, s)) for i in order])
            for n, s, order in (("a", -2.0, range(20)), ("b", -1.5, reversed(range(20)))))  # fmt: skip
    status, out, err = command("compare", a, b, "--metrics", "bs", "--resamples", 99)
    assert status == 0, err
    assert "a.jsonl" in out
    rows = [sample(i, "CI"[(i + e) % 2], epoch=e, confidence=0.6) for i in range(40) for e in (1, 2)]
    status, out, err = command("metric", "ece", written(tmp_path / "e.eval", rows), "--interval", "--resamples", 99)
    assert (status, "answers to one question (id) are resampled together" in err) == (0, True)
    status, _, err = command("metric", "ece", a, "--scorer", "x")
    assert (status, "has no filter 'x': choose from 'none'" in err) == (2, True)
    (tmp_path / "p.csv").write_text("y,p\n1,0.5\n0,0.4\n")
    status, _, err = command("metric", "ece", tmp_path / "p.csv", "--scorer", "x")
    assert (status, "--scorer and --normalize apply to logs only" in err) == (2, True)


# -- two models on the same questions -----------------------------------------------------------------------


def two_models(n, seed, truths=(1.0, 1.0), shared=0.6):
    """Outcomes and confidences of two models: hard questions are hard for both; right with probability c**truth."""
    rng = np.random.default_rng(seed)
    common, own = rng.random(n), rng.random((2, n))
    luck = np.where(rng.random(n) < shared, common, own)
    c = np.round(rng.beta((2, 4), (2, 2), (n, 2)).T, 4)
    return luck < c ** np.array(truths)[:, None], c


def log_of_model(path, right, c, order=None, epochs=1):
    rows = [sample(i // epochs, "C" if right[i] else "I", epoch=1 + i % epochs, confidence=float(c[i]))
            for i in (range(len(c)) if order is None else order)]  # fmt: skip
    return written(path, rows)


def test_two_logs_are_compared_each_model_on_its_own_outcomes(tmp_path):
    right, c = two_models(150, 0, truths=(1.0, 2.0))
    a = log_of_model(tmp_path / "a.eval", right[0], c[0])
    b = log_of_model(tmp_path / "b.eval", right[1], c[1], order=reversed(range(150)))
    for id in ("bs", "ece"):
        found = cal.compare(id, right[0], c[0], c[1], y_true_b=right[1], paired=True, rng=0, n_resamples=99)
        assert found.value_a == pytest.approx(cal.compute(id, right[0], c[0]))
        assert found.value_b == pytest.approx(cal.compute(id, right[1], c[1]))
        status, out, err = command("compare", a, b, "--metrics", id, "--resamples", 99, "-q")
        assert status == 0, err
        assert f"{found.value:.3f}" in out
    both = read_predictions([a, b])  # what a report of two logs is made of
    for i, name in enumerate(both.models):
        p = both.predictions(name)
        assert (p.y == right[i][order_of(150)]).all()
        assert (p.probability == c[i][order_of(150)]).all()


def order_of(n):
    """The order of the questions by the text of their id and epoch."""
    return sorted(range(n), key=lambda i: f"q{i} epoch 1")


def test_samples_of_one_log_alone_are_left_out_of_a_comparison_and_counted(tmp_path):
    right, c = two_models(80, 1)
    a = log_of_model(tmp_path / "a.eval", right[0], c[0])
    b = log_of_model(tmp_path / "b.eval", right[1], c[1], order=range(5, 80))
    status, out, err = command("compare", a, b, "--metrics", "bs", "--resamples", 99)
    assert status == 0, err
    assert f"5 rows of {a} left out: not in every file" in err
    kept = cal.compare("bs", right[0][5:], c[0][5:], c[1][5:], y_true_b=right[1][5:], paired=True, rng=0)
    assert f"{kept.value:.3f}" in out
    other = written(tmp_path / "c.eval", [sample(i, confidence=0.5) for i in range(90, 99)])
    status, _, err = command("compare", a, other)
    assert (status, "have no value of sample in common: do they belong to the same task?" in err) == (2, True)


def test_epochs_of_two_models_are_drawn_by_question(tmp_path):
    right, c = two_models(120, 2)
    a, b = (log_of_model(tmp_path / f"{n}.eval", right[i], c[i], epochs=3) for i, n in enumerate("ab"))
    status, out, err = command("compare", a, b, "--metrics", "bs", "--resamples", 99, "-q")
    assert status == 0, err
    key = sorted(f"q{i // 3} epoch {1 + i % 3}" for i in range(120))
    order = [3 * int(k.split()[0][1:]) + int(k.split()[2]) - 1 for k in key]
    found = cal.compare(
        "bs", right[0][order], c[0][order], c[1][order], y_true_b=right[1][order], paired=True, rng=0, n_resamples=99,
        units=np.array(order) // 3,
    )  # fmt: skip
    assert f"{found.low:.3f} to {found.high:.3f}" in out


def test_a_paired_comparison_keeps_its_level_and_gains_from_pairing():
    """Both models calibrated: no difference of the errors is found too often, and scores of one world are equal."""
    rejected, narrower, paired_bs = 0, 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        q = rng.beta(2, 2, 200)
        c = np.clip(np.stack([q, rng.permutation(q)]), 0.01, 0.99)
        luck = np.where(rng.random(200) < 0.7, rng.random(200), rng.random((2, 200)))
        right = luck < c
        said = {"y_true_b": right[1], "rng": seed, "n_resamples": 99}
        if seed < 15:
            rejected += cal.compare("ece", right[0], c[0], c[1], paired=True, **said).pvalue <= 0.05
        # the same confidences and mostly the same luck: the Brier scores differ by chance and rise and fall together
        same = luck < c[0]
        said["y_true_b"] = same[1]
        together, apart = (cal.compare("bs", same[0], c[0], c[0], paired=p, **said) for p in (True, False))
        narrower += together.high - together.low < apart.high - apart.low
        paired_bs += together.pvalue <= 0.05
    assert rejected <= 4  # more of 15 would have a chance of 0.06% at a level of 5%
    assert paired_bs <= 6  # more of 40 would have a chance of 0.3%
    assert narrower >= 38


def test_what_a_paired_comparison_needs():
    y, p = [0, 1] * 30, [0.3, 0.6] * 30
    with pytest.raises(TypeError, match="paired=True needs y_true_b"):
        cal.compare("bs", y, p, p, paired=True)
    with pytest.raises(ValueError, match="exchanges two predictions of one outcome"):
        cal.compare("bs", y, p, p, y_true_b=y, paired=True, method="swap")
    with pytest.raises(ValueError, match="belong to different rows"):
        cal.compare("bs", y, p, p[:30], y_true_b=y[:30], paired=True)
    with pytest.raises(TypeError, match="one mapping of names"):
        cal.compare("bs", y, {"a": p, "b": p}, paired=True)
