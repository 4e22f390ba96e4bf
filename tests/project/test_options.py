"""The table of options: what is said once, what the help shows first, the old commands, and values that are refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from calibrary import options
from calibrary.base.errors import RefusedError
from calibrary.cli import renewed
from calibrary.cli.start import _surface
from paths import ROOT

FORMS = [(name, form) for name, forms in options.table().items() for form in forms.values()]

#: One name for one thing: the keyword in Python, and the words of the command line.
ONE_NAME = {
    "sample_weight": "weight", "n_resamples": "resamples", "rng": "seed", "units": "unit", "confidence_level": "level",
    "by": "by", "time": "time", "workers": "workers", "n_bins": "bins", "thresholds": "threshold",
    "pos_label": "positive",
}  # fmt: skip


def test_every_help_text_stands_once_in_the_source():
    texts = [text for entry in _entries() for text in entry]
    assert len(texts) > 150
    assert sorted(texts) == sorted(set(texts))
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src" / "calibrary").rglob("*.py"))
    long = {text for text in texts if len(text) > 45}
    assert len(long) > 60
    assert [text for text in long if text in source] == []


def _entries():
    import tomllib

    for entry in tomllib.loads(options.TABLE.read_text(encoding="utf-8")).values():
        yield [one["help"] for one in (entry, *(v for v in entry.values() if isinstance(v, dict))) if "help" in one]


def test_no_field_of_an_entry_is_misspelled():
    commands = {command for forms in options.table().values() for command in forms} - {""}
    known = set(_names(_surface())) | {"fit", "apply", "inverse", "detection-plot", "cache"}
    assert {name for name in commands if name not in known and not name.startswith("study-")} == set()


def _names(command):
    for name, inside in command.get("commands", {}).items():
        yield name
        yield from _names(inside)


def test_sixteen_commands_stand_below_six_headings():
    found = {}
    for name, one in _surface()["commands"].items():
        found.setdefault(one["group"], []).append(name)
    assert found == {
        "Start": ["demo", "app", "report"],
        "Measure": ["metric", "compare", "plot", "recalibrate", "validate", "plan"],
        "Special data": ["answers", "ensemble", "outside", "detection"],
        "Look up": ["explain"],
        "Scale": ["scale"],
        "Serve": ["mcp"],
    }
    assert sorted(_surface()["commands"]["explain"]["commands"]) == ["list", "notation", "recommend", "table2"]
    assert sorted(_surface()["commands"]["scale"]["commands"]) == ["monitor", "scan", "sql", "state"]


def test_ten_options_of_a_report_come_first_and_the_others_have_headings():
    shown = _surface()["commands"]["report"]["options"]
    assert len([o for o in shown if not o["group"] and o["names"] != ["--help"]]) == 10
    assert {o["group"] for o in shown} >= {"Columns", "Reading the file", "Precision", "Output", "Gates"}


@pytest.mark.parametrize(("python", "typed"), ONE_NAME.items())
def test_the_command_line_takes_the_words_of_python(python, typed):
    words = {word for _, form in FORMS if form.keyword == python and not form.argument for word in form.words}
    assert {f"--{typed}", f"--{python.replace('_', '-')}"} <= words
    row = f"| `{python}` | `--{python.replace('_', '-')}`"
    assert row in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *((name, f"explain {name}") for name in ("list", "recommend", "table2", "notation")),
        *((name, f"scale {name}") for name in ("scan", "sql", "state", "monitor")),
        ("report --sampled", "answers"),
        ("report --members", "ensemble"),
        ("report --outside", "outside"),
    ],
)
def test_an_old_command_becomes_the_new_one_and_says_so(old, new):
    words = [*old.split(), "x", "-o", "y"]
    today, said = renewed(words)
    assert said == f"calibrary {old} is an old command: use calibrary {new}"
    option = [word for word in old.split()[1:] if word != "--sampled"]
    assert today == [*new.split(), *option, "x", "-o", "y"]
    assert renewed(today) == (today, "")


def test_jobs_is_an_old_option():
    said = "--jobs is an old option: use --workers"
    assert renewed(["validate", "f.csv", "--jobs", "2"]) == (["validate", "f.csv", "--workers", "2"], said)
    assert renewed(["report", "f.csv", "--jobs=2"]) == (["report", "f.csv", "--workers=2"], said)


def test_an_old_command_works_and_says_the_new_one_once():
    typed = [sys.executable, "-m", "calibrary", "list", "--family", "cumulative"]
    done = subprocess.run(typed, capture_output=True, text=True, check=True)
    assert "ecce_mad" in done.stdout
    assert done.stderr.count("calibrary list is an old command: use calibrary explain list") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--threshold", "20"], "--threshold 20.0: pass a number between 0 and 1, such as 0.2 for 20%"),
        (["--thresholds", "0"], "--threshold 0.0: pass a number between 0 and 1"),
        (["--resamples", "-1"], "--resamples -1: pass a whole number between 0 and 1,000,000"),
        (["--confidence-level", "95"], "--level 95.0: pass a number between 0 and 1, such as 0.95 for 95%"),
        (["--weight-type", "none"], "--weight-type 'none' is not known"),
    ],
)
def test_values_are_checked_before_the_file_is_read(command, words, said):
    status, out, err = command("report", "there-is-no-such-file.csv", *words)
    assert (status, out) == (2, "")
    assert err.startswith(f"calibrary: {said}"), err


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("thresholds", [0.5, 20], r"thresholds\[1\]=20: pass a number between 0 and 1"),
        ("thresholds", "0.5", "thresholds='0.5': pass a number"),
        ("workers", "two", "workers='two': pass a whole number of at least 1"),
        ("n_bins", 2.5, "n_bins=2.5: pass a whole number"),
        ("n_bins", True, "n_bins=True: pass a whole number"),
        ("ordinal", "yes", "ordinal='yes' is neither True nor False"),
        ("confidence_level", "95%", "confidence_level='95%': pass a number"),
        ("confidence_level", float("nan"), "confidence_level=nan: pass a number"),
        ("weight_type", "zzz", "weight_type='zzz' is not known"),
    ],
)
def test_a_setting_of_another_type_or_range_is_refused(name, value, said):
    with pytest.raises(RefusedError, match=f"^{said}"):
        options.checked({name: value})


def test_the_defaults_and_what_a_range_contains_are_never_refused():
    import numpy as np

    options.checked({name: option.initial for name, option in options.settings().items()})
    options.checked({"thresholds": np.array([0.1, 0.9]), "n_bins": np.int64(3), "workers": 1, "ordinal": np.True_})
    options.checked(
        {"confidence_level": np.float64(0.9), "thresholds": (0.5,), "n_resamples": 0, "weight_type": "importance"}
    )


def test_the_fields_of_the_page_are_options_of_the_table():
    page = (ROOT / "src" / "calibrary" / "application" / "app.js").read_text(encoding="utf-8")
    switches = json.loads(re.search(r"const SWITCHES = (\[.*?\])", page)[1])
    offered = {option.name for option in options.options_of("report") if option.app}
    assert set(switches) - {"sampled"} <= offered


# -- one name for one thing in Python -------------------------------------------------------------------

#: Words that people use elsewhere for what has a name here.
OTHER_WORDS = {
    "y_true": "y label_true target y_test outcome", "y_prob": "p y_pred y_score proba probs probabilities_pred",
    "sample_weight": "w weight weights sample_weights", "confidence_level": "level ci conf coverage_level",
    "n_resamples": "n_boot n_bootstraps resamples n_draws draws n_permutations n_reps", "by": "group groups split_by",
    "rng": "seed random_state random_seed", "units": "unit cluster clusters cluster_id subject patients",
    "time": "date dates times timestamp", "n_bins": "bins nbins num_bins", "pos_label": "positive pos positive_class",
    "thresholds": "threshold cutoffs cutoff", "workers": "jobs n_jobs n_processes processes n_workers",
}  # fmt: skip
#: What has such a word and is another thing, or is one of it.
ANOTHER_THING = {
    "probability that a set of classes shall reach": "set_coverage .level",
    "one threshold": "thresholded_adaptive_calibration_error net_benefit plan plots.plot_validation "
    "plots.validation_data .threshold",
    "the outcome that a model is fitted to": "validate .y",
    "an outcome that is no class": "dawid_sebastiani_score_moments normalized_squared_error_score_moments .y",
    "probabilities of codes": "ls_ecoc ls_ecoc_r .p .weights",
    "groups that the metric is about": "shift_curve field_relative_calibration_error grouping_loss "
    "partitioned_calibration_error weighted_subset_miscalibration_score plots.simplex_data .group .groups",
    "clusters of features": "reliability_map_score plots.reliability_map_data .clusters",
    "perturbed copies of a row": "consistency_confidence .n_draws",
    "the name of a column": "scale.dask scale.scan scale.spark scale.sql .weight",
    "an older spelling": "average_calibration_error d_ece_map detection_expected_calibration_error "
    "expected_global_calibration_error localization_aware_expected_calibration_error .bins",
}


def _other_things():
    for names in ANOTHER_THING.values():
        words = names.split()
        yield from (f"{verb}{name}" for verb in words if verb[0] != "." for name in words if name[0] == ".")


def _parameters():
    import inspect

    import calibrary as cal
    from calibrary import language, plots, scale
    from calibrary.public import PUBLIC

    verbs = {
        name: getattr(cal, name) for name, row in PUBLIC.items() if row.kind in ("verb", "table", "metric", "helper")
    }
    for room, of in (("plots", plots), ("scale", scale), ("language", language)):
        verbs |= {f"{room}.{name}": getattr(of, name) for name in dir(of) if not name.startswith("_")}
    for name, verb in verbs.items():
        if inspect.isfunction(verb):
            yield from (f"{name}.{parameter}" for parameter in inspect.signature(verb).parameters)


def test_one_thing_has_one_name_in_every_public_function():
    taken = set(_parameters())
    assert len(taken) > 2000
    another = set(_other_things())
    assert all(
        any(name.startswith(f"{verb}.") for name in taken & another) for verb in {n.rpartition(".")[0] for n in another}
    )
    words = {word: ours for ours, others in OTHER_WORDS.items() for word in others.split()}
    wrong = {name: words[name.rpartition(".")[2]] for name in taken - another if name.rpartition(".")[2] in words}
    assert wrong == {}, "each of these has the name on the right in all other functions"


def test_the_table_of_words_is_that_of_the_page():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| `--", page, re.M)
    assert {name for row in rows for name in re.findall(r"\w+", row)} == set(OTHER_WORDS)
    used = {name.rpartition(".")[2] for name in _parameters()}
    assert set(OTHER_WORDS) <= used
