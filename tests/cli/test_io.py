"""Files of predictions: formats, guessed columns, and one clear sentence for each error."""

from __future__ import annotations

import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from calibrary.cli.read import InputError, read_predictions

Y = [0, 1, 1, 0]
C = [0.2, 0.7, 0.9, 0.4]


def csv(header, rows):
    return "\n".join([",".join(header), *(",".join(map(str, r)) for r in rows)]) + "\n"


@pytest.fixture
def table():
    return pa.table({"y": Y, "p": C})


def write(tmp_path, kind, table):
    path = tmp_path / f"predictions.{kind}"
    text = csv(table.column_names, zip(*table.to_pydict().values(), strict=True))
    if kind in ("csv", "txt"):
        path.write_text(text)
    elif kind == "tsv":
        path.write_text(text.replace(",", "\t"))
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif kind == "parquet":
        pq.write_table(table, path)
    elif kind in ("arrow", "feather"):
        feather.write_feather(table, path)
    elif kind == "jsonl":
        path.write_text("\n".join(json.dumps(row) for row in table.to_pylist()))
    elif kind == "npz":
        np.savez(path, **{k: np.array(v) for k, v in table.to_pydict().items()})
    return path


@pytest.mark.parametrize("kind", ["csv", "txt", "tsv", "csv.gz", "parquet", "arrow", "feather", "jsonl", "npz"])
def test_every_format_gives_the_same_predictions(tmp_path, table, kind):
    found = read_predictions(write(tmp_path, kind, table))
    assert found.y.tolist() == Y
    np.testing.assert_array_equal(found.models["p"], C)
    assert "label column guessed: y" in found.notes
    assert "probability columns guessed: p" in found.notes


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "jsonl", "npz", "csv.gz"])
def test_standard_input_is_recognised_by_its_content(tmp_path, table, kind, monkeypatch):
    data = write(tmp_path, kind, table).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert read_predictions("-").y.tolist() == Y


@pytest.mark.parametrize("name", ["risk", "Proba", "score", "yhat", "y_pred", "predicted_risk", "risk_score"])
def test_common_names_of_probabilities_are_known(tmp_path, name):
    path = tmp_path / "p.csv"
    path.write_text(csv(["outcome", "age", "predicted_class", name], [(0, 71, 0, 0.2), (1, 64, 1, 0.6)]))
    found = read_predictions(path)
    np.testing.assert_array_equal(found.models[name], [0.2, 0.6])
    assert f"probability columns guessed: {name}" in found.notes


def test_columns_of_several_classes_are_matched_by_name(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(csv(["truth", "prob_dog", "prob_cat"], [("cat", 0.2, 0.8), ("dog", 0.6, 0.4)]))
    found = read_predictions(path, prob=["prob_"])
    assert found.classes == ("dog", "cat")
    assert found.y.tolist() == [1, 0]
    np.testing.assert_array_equal(found.models["prob_"], [[0.2, 0.8], [0.6, 0.4]])
    assert found.predictions().classes == ("dog", "cat")


def test_numbered_columns_come_in_numerical_order(tmp_path):
    path = tmp_path / "p.csv"
    header = ["y", *(f"c{k}" for k in range(11, -1, -1))]
    path.write_text(csv(header, [(11, *([0] * 11), 1), (0, 1, *([0] * 11))]))
    found = read_predictions(path)
    np.testing.assert_array_equal(found.models["c"].argmax(axis=1), [0, 11])
    assert found.y.tolist() == [11, 0]


def test_several_models_weights_and_groups(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(csv(["y", "a", "b", "w", "site"], [(1, 0.7, 0.6, 2, "x"), (0, 0.2, 0.1, 1, "y")]))
    found = read_predictions(path, models=["a", "b"], weight="w", group="site")
    assert list(found.models) == ["a", "b"]
    assert found.weight.tolist() == [2, 1]
    assert list(found.group) == ["x", "y"]


def test_logits_become_probabilities(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(csv(["y", "z"], [(1, 0.0), (0, -40.0)]))
    np.testing.assert_allclose(read_predictions(path, prob=["z"], logits=True).models["z"], [0.5, 0.0], atol=1e-15)


def test_missing_values_are_reported_by_row_and_column_and_may_be_dropped(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("y,p\n1,0.7\n0,\n1,0.9\n")
    with pytest.raises(InputError, match=r"column 'p' has 1 missing value, the first in row 2 .* --drop-missing"):
        read_predictions(path)
    found = read_predictions(path, drop_missing=True)
    assert found.y.tolist() == [1, 1]
    assert found.n_dropped == 1


def test_a_pickle_in_an_npz_is_not_opened(tmp_path):
    path = tmp_path / "p.npz"
    np.savez(path, y=np.array([{"run": "code"}], dtype=object))
    with pytest.raises(InputError, match="cannot be read as NPZ"):
        read_predictions(path)


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("", {}, "is empty"),
        ("y,p\n", {}, "no rows"),
        ("y,p\n1,0.5\n", {"label": "z"}, "no column is called 'z'"),
        ("label,p\n1,0.5\n", {"label": "lable"}, "did you mean 'label'"),
        ("y,p\n1,0.5\n", {"prob": ["q"]}, "no column, and no prefix"),
        ("a,b\n1,0.5\n", {}, "name it with --label; the columns are 'a', 'b'"),
        ("y,truth,p\n1,1,0.5\n", {}, "several columns may be the label"),
        ("y,x\n1,0.5\n", {}, "name it with --prob"),
        ("y,p\n1,50\n0,0.2\n1,70\n", {}, r"row 1: 50; row 3: 70.*mixed.*--percent"),
        ("y,p\n1,abc\n", {}, "'abc' in row 1, which is not a number"),
        ("y,p\n3,0.2\n1,0.3\n2,0.1\n", {}, "3 different labels"),
        ("y,p\nsick,0.2\nwell,0.3\n", {}, "--positive"),
        ("y,p\nsick,0.2\nwell,0.3\n", {"positive": "ill"}, "is not a label"),
        ("y,p0,p1,p2\n7,0.2,0.3,0.5\n", {}, "name the columns after the classes"),
    ],
)  # fmt: skip
def test_a_mistake_gives_one_sentence(tmp_path, text, options, sentence):
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=sentence) as caught:
        read_predictions(path, **options)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_there_or_not_readable(tmp_path):
    (tmp_path / "scores.csv").write_text("y,p\n1,0.5\n")
    with pytest.raises(InputError, match=r"did you mean 'scores.csv'"):
        read_predictions(tmp_path / "score.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="is a folder without any file of predictions"):
        read_predictions(tmp_path / "empty")
    bad = tmp_path / "x.parquet"
    bad.write_bytes(b"PAR1 but not really")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_predictions(bad)


def test_a_transposed_file_is_refused_before_it_is_parsed(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(",".join(f"c{i}" for i in range(30_000)) + "\n")
    with pytest.raises(InputError, match="30,000 columns"):
        read_predictions(path)
