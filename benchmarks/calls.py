"""The calls that calibrary and another package both offer, and why their numbers differ where they do.

Calls are kept as text: the benchmark runs it, the results and the documentation show it. ``y``, ``c``, ``two``, ``p``
are the arrays of ``data.py``. ``Peer.same`` is the calibrary call that gives the other package's number, where the
plain one does not; ``Peer.why`` names the reason.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Types that 0/1 labels come in: as they are stored, as a comparison gives them, as a table of floats holds them.
LABELS = ("int64", "bool", "float64")
#: Every loop is compiled at its first call, as it is in a process that has called it for some seconds.
OURS = "import numpy as np; import calibrary as cal; from calibrary.numerics import compiled; compiled.FORCED = True"


@dataclass(frozen=True)
class Package:
    """A package from PyPI: what pip is asked for, and what one must know about it."""

    name: str
    requirement: str
    options: tuple[str, ...] = ()
    note: str = ""


PACKAGES = {
    p.name: p
    for p in (
        Package("scikit-learn", "scikit-learn"),
        Package("torchmetrics", "torchmetrics"),
        Package("netcal", "netcal"),
        Package("uncertainty-calibration", "uncertainty-calibration"),
        Package("relplot", "relplot"),
        Package("MAPIE", "MAPIE"),
        Package("calzone-tool", "calzone-tool"),
        Package("scoringrules", "scoringrules"),
        Package("model-diagnostics", "model-diagnostics"),
        Package("pycaleva", "pycaleva"),
        Package("probmetrics", "probmetrics numba relplot", note="its metrics need numba and relplot, undeclared"),
        Package("scikit-misc", "scikit-misc"),
        Package("pycocotools", "pycocotools"),
        Package(
            "calibre",
            "calibre>=0.14",
            ("--no-deps", "--ignore-requires-python"),
            "declares Python 3.12 or later; pure Python, so it is run on this Python too",
        ),
        Package("probcal", "probcal>=0.4"),
        Package("reliably-metrics", "reliably-metrics"),
        Package("rankcal", "rankcal"),
        Package(
            "smartcal",
            "smartcal python-decouple bayesian-optimization betacal colorama",
            ("--no-deps",),
            "without xgboost, which its metrics do not need",
        ),
    )
}


@dataclass(frozen=True)
class Peer:
    """One call of another package. ``largest``: most rows it is asked for; ``random``: the value changes by itself."""

    package: str
    setup: str
    call: str
    same: str = ""
    why: str = ""
    largest: int = 10**6
    random: bool = False


@dataclass(frozen=True)
class Task:
    """One thing to compute, our call for it, and the others'. ``tolerance`` is relative; ``labels`` are types of y."""

    id: str
    title: str
    data: str
    ours: str
    peers: tuple[Peer, ...]
    metric: str = ""
    largest: int = 10**6
    tolerance: float = 1e-9
    labels: tuple[str, ...] = ("int64",)


# -- reasons that several packages share --------------------------------------------------------------

ONE_BIN_FEWER = "num_bins is the number of edges, not of bins: always one bin too few"
PHANTOM_BIN = "a confidence of exactly 1 falls in a hidden extra bin, where nothing can cancel it"
LEFT_QUANTILES = "cuts at interpolated quantiles, bins closed on the left; ours puts N/B rows in each bin"
LEFT_OUT = "bins are open on the left, so that the row with the smallest confidence is in none and is left out"
SINGLE_PRECISION = "single precision"
HALF_MIRROR = (
    "its mirror leaves out the outermost grid point, so that a row within 0.001 of 0 or 1 counts half; its kernel ends "
    "at a distance of 0.5, and the bandwidth is found by ten halvings. A finer grid does not help; the sum over all "
    "rows and their mirror images gives our number"
)
LOGIT_KERNEL = "another kernel: Gaussian in the log odds, without mirror images"
MONTE_CARLO = "a random estimate without a seed; ours is the exact value it scatters around"
BOTH_COLUMNS = f"sums over both columns, so that two classes give twice the usual number; {SINGLE_PRECISION}"
UNDEFINED = "undefined (0/0) on both sides; ours warns and says why"
STANDARDISED = "divided by its standard deviation under calibration; that is the field `normalised` of our test"
JITTERED = (
    f"{STANDARDISED}; before sorting, every score is multiplied by one plus a random 1e-8 (seed 1), which swaps "
    "neighbours among very many scores"
)
NO_START = (
    "leaves out the start C_0 = 0 of the walk, which counts where all sums are on one side of it; "
    "the definition, its inventors' code and the law of its p-value have it"
)
_JITTERED = "np.minimum(c * (1 + 1e-8 * np.random.RandomState(1).normal(size=len(c))), 1)"
_BETWEEN_QUANTILES = (
    "cal.expected_calibration_error(y, c, edges=[0, *np.quantile(c, np.linspace(0, 1, 16)[1:-1]), 1], closed='left')"
)
DEBIASED_ROOT = "under the name ECE, the root of the debiased squared error, equal-mass bins"

# -- how each package wants its input ----------------------------------------------------------------

_TORCH = "import torch; ty, tc = torch.from_numpy(y), torch.from_numpy(c)"
_TORCH_K = "import torch; ty, tp = torch.from_numpy(y), torch.from_numpy(p)"
_TORCHMETRICS = "from torchmetrics.functional.classification import *; unchecked = {'validate_args': False}; "
_NETCAL = (
    "from netcal.metrics import ACE, ECE, MCE, MMCE; "
    "ece15, mass15, mce15, ace15, mmce, cells = ECE(15), ECE(15, equal_intervals=False), MCE(15), ACE(15), MMCE(),"
    " ECE([10, 5, 5], detection=True)"
)
_KUMAR = "import calibration"
_MAPIE = "from mapie.metrics.calibration import *"
_CALZONE = "from calzone.metrics import *; from calzone.utils import reliability_diagram"
_CALIBRE = "import calibre"
_RELPLOT = "from relplot.metrics import *"
_PROBMETRICS = (
    "import torch; from probmetrics.metrics import Metrics; ty, tp = torch.from_numpy(y), torch.from_numpy({})"
)
_PREBUILT = "; built = Metrics.from_names(['{}'])"
_SKLEARN = (
    "from sklearn.metrics import *; from sklearn.calibration import calibration_curve; import numpy as np; "
    "import sklearn; sklearn.set_config(assume_finite=True, skip_parameter_validation=True)"
)
_DIAGNOSTICS = "from model_diagnostics.scoring import *; squared, log = SquaredError(), LogLoss()"
_PROBCAL = "from probcal import metrics"
_RELIABLY = "from reliably import metrics"
_RANKCAL = (
    "import torch; from rankcal import metrics; ty, tc = torch.from_numpy(y.astype(float)), torch.from_numpy(c); "
    "fy, fc = ty.float(), tc.float()"
)
_SMARTCAL = "from smartcal.metrics import *; import logging; logging.disable(); ece15 = ECE(15)"


def _probmetrics(name: str, columns: str = "two", why: str = "", same: str = "", reads: str | None = None) -> Peer:
    setup = _PROBMETRICS.format(columns) + _PREBUILT.format(name)
    call = f"built.compute_all_from_labels_probs(ty, tp)['{reads or name}']"
    return Peer("probmetrics", setup, call, why=why or SINGLE_PRECISION, same=same)


def _probcal(call: str, why: str = "", same: str = "", largest: int = 10**6) -> Peer:
    return Peer("probcal", _PROBCAL, f"metrics.{call}", same, why, largest)


def _reliably(call: str, why: str = "", same: str = "") -> Peer:
    return Peer("reliably-metrics", _RELIABLY, f"metrics.{call}", same, why)


def _rankcal(call: str, why: str = SINGLE_PRECISION) -> Peer:
    return Peer("rankcal", _RANKCAL, f"metrics.{call}", why=why)


TASKS = (
    Task(
        "ece", "expected calibration error, 15 bins", "binary", "cal.expected_calibration_error(y, c)",
        (
            Peer("relplot", _RELPLOT, "binnedECE(c, y, nbins=15)"),
            Peer("calibre", _CALIBRE, "calibre.expected_calibration_error(y, c, n_bins=15)"),
            Peer(
                "scikit-learn", _SKLEARN,
                "np.dot(np.abs(np.subtract(*calibration_curve(y, c, n_bins=15))),"
                " [n for n in np.histogram(c, 15, (0, 1))[0] if n]) / len(y)",
            ),
            Peer("torchmetrics", _TORCHMETRICS + _TORCH, "binary_calibration_error(tc, ty, n_bins=15, **unchecked)"),
            Peer("netcal", _NETCAL, "ece15.measure(c, y)"),
            Peer("uncertainty-calibration", _KUMAR, "calibration.get_ece(c, y)"),
            Peer(
                "MAPIE", _MAPIE, "expected_calibration_error(y, c, num_bins=15, split_strategy='uniform')",
                "cal.expected_calibration_error(y, c, n_bins=14)", ONE_BIN_FEWER,
            ),
            Peer(
                "calzone-tool", _CALZONE,
                "calculate_ece_mce(*(v for v in reliability_diagram(y, two, num_bins=15, class_to_plot=1)"
                " if len(v) == 15))[0]",
            ),
            _probmetrics("ece-15"),
            _probcal("ece(y, c, strategy='width')"),
            _rankcal("ece(tc, ty, n_bins=15)"),
        ),
        "ece", labels=LABELS,
    ),
    Task(
        "rmsce", "root mean squared calibration error, 15 bins", "binary",
        "cal.expected_calibration_error(y, c, norm=2)",
        (
            Peer(
                "torchmetrics", _TORCHMETRICS + _TORCH,
                "binary_calibration_error(tc, ty, n_bins=15, norm='l2', **unchecked)",
            ),
            _probmetrics("rmsce-15"),
            Peer(
                "calibre", _CALIBRE, "calibre.root_mean_squared_calibration_error(y, c, n_bins=15)",
            ),
            _probcal("ece(y, c, strategy='width', norm='l2')"),
        ),
        "ece",
    ),
    Task(
        "mce", "maximum calibration error, 15 bins", "binary", "cal.maximum_calibration_error(y, c)",
        (
            Peer(
                "torchmetrics", _TORCHMETRICS + _TORCH,
                "binary_calibration_error(tc, ty, n_bins=15, norm='max', **unchecked)",
            ),
            Peer("netcal", _NETCAL, "mce15.measure(c, y)"),
            Peer("calibre", _CALIBRE, "calibre.maximum_calibration_error(y, c, n_bins=15)"),
            _probmetrics("mce-15"),
            _probcal("ece(y, c, strategy='width', norm='max')"),
            _rankcal("mce(tc, ty, n_bins=15)"),
        ),
        "mce",
    ),
    Task(
        "average", "plain mean of the bins' gaps", "binary",
        "cal.region_balanced_calibration_error(y, c, min_count=1)",
        (
            Peer(
                "netcal", _NETCAL, "ace15.measure(c, y)",
                why="netcal's ACE is the average over bins (our rbece with min_count=1), not adaptive (our ace)",
            ),
        ),
        "rbece",
    ),
    Task(
        "ace", "adaptive (equal-mass) calibration error, 15 bins", "binary", "cal.adaptive_calibration_error(y, c)",
        (
            Peer("calibre", _CALIBRE, "calibre.plugin_calibration_error(y, c, norm=1, n_bins=15)"),
            _probcal("ece(y, c)", LEFT_QUANTILES, _BETWEEN_QUANTILES),
            _rankcal("adaptive_ece(fc, fy, n_bins=15)", f"cuts at interpolated quantiles; {SINGLE_PRECISION}"),
            Peer(
                "netcal", _NETCAL, "mass15.measure(c, y)",
                _BETWEEN_QUANTILES, LEFT_QUANTILES,
            ),
            Peer(
                "uncertainty-calibration", _KUMAR, "calibration.get_ece_em(c, y)",
                "cal.adaptive_calibration_error(y, c, mass_rule='split')",
                "the first N mod B bins get one more row (numpy's array_split); ours spreads them",
            ),
            Peer(
                "MAPIE", _MAPIE, "expected_calibration_error(y, c, num_bins=15, split_strategy='quantile')",
                "cal.expected_calibration_error(y, c, edges=[0, *np.quantile(c, np.linspace(0, 1, 15)[:-1]), 1])",
                f"{ONE_BIN_FEWER}, and the smallest confidence gets a bin of its own",
            ),
            Peer(
                "calzone-tool", _CALZONE,
                "calculate_ece_mce(*(v for v in reliability_diagram(y, two, num_bins=15, class_to_plot=1,"
                " is_equal_freq=True) if len(v) == 15))[0]",
                "cal.expected_calibration_error(y[c > c.min()], c[c > c.min()],"
                " edges=[0, *np.quantile(c, np.linspace(0, 1, 16)[1:-1]), 1])",
                LEFT_OUT,
            ),
            Peer(
                "pycaleva", "from pycaleva import CalibrationEvaluator",
                "CalibrationEvaluator(y, c, outsample=True, n_groups=15).ace",
                "cal.region_balanced_calibration_error(y, c, binning='mass', mass_rule='quantile', min_count=1)",
                "bins between interpolated quantiles, and every bin counts 1/B, whatever it holds;"
                " the call also computes all of the package's other metrics",
            ),
        ),
        "ace",
    ),
    Task(
        "ece_sweep", "sweep calibration error", "binary", "cal.sweep_calibration_error(y, c)",
        (
            Peer("calibre", _CALIBRE, "calibre.sweep_calibration_error(y, c, norm=1)"),
            _probcal("ece_sweep(y, c)", "stops at the first number of bins that is not monotone, 100 at the most"),
        ),
        "ece_sweep",
    ),
    Task(
        "ce2_db", "debiased squared calibration error, 15 equal-mass bins", "binary",
        "cal.debiased_squared_calibration_error(y, c)",
        (
            Peer(
                "calibre", _CALIBRE, "calibre.debiased_calibration_error(y, c, squared=True)",
                "cal.debiased_squared_calibration_error(y, c, mass_rule='floor')",
                "N mod B spare rows are spread over the bins; ours follows the inventors (the first bins get them)",
            ),
            Peer(
                "uncertainty-calibration", _KUMAR,
                "calibration.lower_bound_scaling_ce(c, y, p=2, debias=True, num_bins=15,"
                " binning_scheme=calibration.utils.get_equal_bins) ** 2",
                "max(cal.debiased_squared_calibration_error(y, c), 0.0)", "negative estimates are cut to 0",
            ),
        ),
        "ce2_db",
    ),
    Task(
        "ece_db", "debiased calibration error, 15 equal-mass bins", "binary",
        "cal.debiased_calibration_error(y, c)",
        (
            Peer(
                "uncertainty-calibration", _KUMAR, "calibration.get_ece_em(c, y, debias=True)", random=True,
                why="1000 random draws per bin; ours is the exact expectation (method='monte-carlo' draws)",
            ),
        ),
        "ece_db",
    ),
    Task(
        "hl", "Hosmer-Lemeshow statistic, 10 equal-mass bins", "binary", "cal.hosmer_lemeshow(y, c)",
        (
            Peer(
                "calzone-tool", _CALZONE,
                "hosmer_lemeshow_test(*(v for v in reliability_diagram(y, two, num_bins=10, class_to_plot=1,"
                " is_equal_freq=True) if len(v) == 10))[0]",
                "cal.hosmer_lemeshow(y[c > c.min()], c[c > c.min()],"
                " edges=[0, *np.quantile(c, np.linspace(0, 1, 11)[1:-1]), 1])",
                LEFT_OUT,
            ),
            Peer(
                "pycaleva", "from pycaleva import CalibrationEvaluator",
                "CalibrationEvaluator(y, c, outsample=True, n_groups=10).hosmerlemeshow(verbose=False).statistic",
                "cal.hosmer_lemeshow(y, c, mass_rule='quantile')",
                "bins between interpolated quantiles; the call also computes all of the package's other metrics",
            ),
            _probcal(
                "hosmer_lemeshow(y, c).statistic", LEFT_QUANTILES,
                "cal.hosmer_lemeshow(y, c, edges=[0, *np.quantile(c, np.linspace(0, 1, 11)[1:-1]), 1], closed='left')",
            ),
        ),
        "hl",
    ),
    Task(
        "spiegelhalter", "Spiegelhalter's z", "binary", "cal.spiegelhalter_z(y, c)",
        (
            Peer("MAPIE", _MAPIE, "spiegelhalter_statistic(y, c)"),
            Peer("calzone-tool", _CALZONE, "spiegelhalter_z_test(y, two)[0]"),
            _probcal("spiegelhalter_z(y, c).z"),
        ),
        "spiegelhalter",
    ),
    Task(
        "sice", "surrogate interval calibration error", "binary", "cal.surrogate_interval_calibration_error(y, c)",
        (Peer("relplot", _RELPLOT, "intCE_rand(c, y)", why=MONTE_CARLO, random=True),),
        "sice",
    ),
    Task(
        "smece", "smooth calibration error", "binary", "cal.smooth_calibration_error_residual(y, c)",
        (
            Peer("relplot", _RELPLOT, "smECE(c, y)", why=HALF_MIRROR),
            Peer("calibre", _CALIBRE, "calibre.smooth_calibration_error(y, c)", why=HALF_MIRROR),
            _probmetrics("smece", why=f"{HALF_MIRROR} (it calls relplot)"),
            _probcal("smooth_ece(y, c)", LOGIT_KERNEL),
        ),
        "smece", labels=LABELS,
    ),
    Task(
        "mmce", "maximum mean calibration error of the predicted class", "binary",
        "cal.maximum_mean_calibration_error(y, c, lens='top-label')",
        (Peer("netcal", _NETCAL, "mmce.measure(two, y)", largest=10**5),),
        "mmce",
    ),
    Task(
        "skce_uq", "squared kernel calibration error, all pairs", "binary",
        "cal.squared_kernel_calibration_error_uq(y, c, bandwidth=0.25)",
        (
            _probcal(
                "skce(y, c, bandwidth=0.25)", "counts both classes of a pair: twice our number",
                "2 * cal.squared_kernel_calibration_error_uq(y, c, bandwidth=0.25)", 10**4,
            ),
        ),
        "skce_uq",
    ),
    Task(
        "lkce", "Laplace kernel calibration error", "binary", "cal.laplace_kernel_calibration_error(y, c)",
        (Peer("relplot", _RELPLOT, "laplace_calibration_approx(c, y)", why=MONTE_CARLO, random=True),),
        "lkce",
    ),
    Task(
        "ici", "integrated calibration index by loess", "binary", "cal.integrated_calibration_index(y, c)",
        (
            Peer(
                "scikit-misc", "from skmisc.loess import loess; import numpy as np; labels = y.astype(float)",
                "np.abs((lambda m: m.fit() or m)(loess(c, labels, span=0.75, degree=2))"
                ".outputs.fitted_values - c).mean()",
            ),
            _probcal("ici(y, c)", "local lines where ours are parabolas (R's loess), fitted at 512 places"),
        ),
        "ici",
    ),
    Task(
        "ici_lowess", "integrated calibration index by lowess", "binary",
        "cal.integrated_calibration_index(y, c, map='lowess', span=0.5, delta=0.001)",
        (Peer("calzone-tool", _CALZONE, "lowess_regression_analysis(y, two)[0]"),),
        "ici", tolerance=1e-6,
    ),
    Task(
        "cis", "Cox calibration slope", "binary", "cal.cox_intercept_slope(y, c).slope",
        (
            Peer("calzone-tool", _CALZONE, "cox_regression_analysis(y, two)[0]"),
            _probcal("calibration_slope(y, c)"),
        ),
        "cis", tolerance=1e-6,
    ),
    Task(
        "ecce_mad", "Kolmogorov-Smirnov calibration error", "binary", "cal.kolmogorov_smirnov_calibration_error(y, c)",
        (
            Peer(
                "MAPIE", _MAPIE, "kolmogorov_smirnov_statistic(y, c)",
                f"cal.test('ecce_mad', y, {_JITTERED}, method='asymptotic').normalised", JITTERED,
            ),
            Peer(
                "probmetrics",
                _PROBMETRICS.format("two")
                + "; from probmetrics.metrics import *; built = KolmogorovSmirnovCalibrationMetric()",
                "built.compute_all_from_labels_probs(ty, tp)['kolmogorov-smirnov']",
                why=SINGLE_PRECISION,
            ),
            _probcal("ecce(y, c).stat_max"),
        ),
        "ecce_mad",
    ),
    Task(
        "ecce_mad_test", "Kolmogorov-Smirnov test of calibration, p-value", "binary",
        "cal.test('ecce_mad', y, c, method='asymptotic').pvalue",
        (
            Peer(
                "MAPIE", _MAPIE, "kolmogorov_smirnov_p_value(y, c)",
                why="one minus a cumulative series, which cancels below 1e-9; ours sums the tail itself",
            ),
        ),
        "ecce_mad",
    ),
    Task(
        "ecce_r", "Kuiper calibration error", "binary", "cal.kuiper_calibration_error(y, c)",
        (
            Peer(
                "MAPIE", _MAPIE, "kuiper_statistic(y, c)",
                f"cal.test('ecce_r', y, {_JITTERED}, method='asymptotic').normalised", JITTERED,
            ),
            _probmetrics("kuiper"),
        ),
        "ecce_r",
    ),
    Task(
        "ecce_r_test", "Kuiper test of calibration, p-value", "binary",
        "cal.test('ecce_r', y, c, method='asymptotic').pvalue",
        (
            Peer(
                "MAPIE", _MAPIE, "kuiper_p_value(y, c)",
                why="one minus a cumulative series, which cancels below 1e-9; ours sums the tail itself",
            ),
        ),
        "ecce_r",
    ),
    Task(
        "bs", "Brier score", "binary", "cal.brier_score(y, c)",
        (
            Peer("scikit-learn", _SKLEARN, "brier_score_loss(y, c)"),
            Peer("scoringrules", "import scoringrules", "scoringrules.brier_score(y, c).mean()"),
            Peer("model-diagnostics", _DIAGNOSTICS, "squared(y, c)"),
            Peer("calibre", _CALIBRE, "calibre.brier_score(y, c)"),
            _probcal("brier_score(y, c)"),
            _reliably("brier(y, c, ci=None).value"),
            _probmetrics(
                "brier", same="cal.brier_score(y, c, scale='sum')",
                why=BOTH_COLUMNS,
            ),
        ),
        "bs", labels=LABELS,
    ),
    Task(
        "nll", "negative log likelihood", "binary", "cal.negative_log_likelihood(y, c)",
        (
            Peer("scikit-learn", _SKLEARN, "log_loss(y, c)"),
            Peer("scoringrules", "import scoringrules", "scoringrules.log_score(y, c).mean()"),
            Peer("model-diagnostics", _DIAGNOSTICS, "log(y, c)"),
            _probmetrics("logloss"),
            _probcal("log_loss(y, c)"),
            _reliably("nll(y, c, ci=None).value"),
        ),
        "nll", labels=LABELS,
    ),
    Task(
        "mae", "mean absolute error", "binary", "cal.mean_absolute_error(y, c)",
        (Peer("scikit-learn", _SKLEARN, "mean_absolute_error(y, c)"),),
        "mae",
    ),
    Task(
        "sr", "success rate (accuracy)", "binary", "cal.success_rate(y, c)",
        (Peer("scikit-learn", _SKLEARN, "accuracy_score(y, c > 0.5)"),),
        "sr",
    ),
    Task(
        "corp", "miscalibration by isotonic regression (CORP)", "binary",
        "cal.score_decomposition(y, c).miscalibration",
        (
            Peer(
                "model-diagnostics", _DIAGNOSTICS,
                "decompose(y_obs=y, y_pred=c, scoring_function=squared)['miscalibration'][0]",
            ),
            Peer("calibre", _CALIBRE, "calibre.score_decomposition(y, c)['miscalibration']"),
        ),
    ),
    Task(
        "curve", "reliability table, 15 bins (sum of mean labels)", "binary",
        "cal.reliability_bins(y, c).outcome.sum()",
        (Peer("scikit-learn", _SKLEARN, "calibration_curve(y, c, n_bins=15)[0].sum()"),),
    ),
    Task(
        "interval", "95% bootstrap interval of ECE, 1000 resamples (upper end)", "binary",
        "cal.interval('ece', y, c, n_resamples=1000, method='percentile', rng=0).high",
        (
            Peer(
                "calibre", _CALIBRE,
                "calibre.bootstrap_ci(lambda y, c: calibre.expected_calibration_error(y, c, n_bins=15), y, c,"
                " method='percentile')['upper']",
                same="cal.interval('ece', y, c, n_resamples=1000, method='percentile',"
                " rng=np.random.default_rng(0)).high",
                why="the random numbers of numpy's default generator", largest=10**5,
            ),
            Peer(
                "calzone-tool", _CALZONE + "; import numpy as np",
                "np.quantile(CalibrationMetrics(1, 15).bootstrap(y, two, ['ECE-H'], n_samples=1000)['ECE-H'], 0.975)",
                why="other random numbers", random=True, largest=10**5,
            ),
            Peer(
                "uncertainty-calibration", _KUMAR,
                "calibration.get_calibration_error_uncertainties(c, y, alpha=0.05)[2]",
                why="the interval of the plug-in L2 error, not of the ECE; other random numbers",
                random=True, largest=10**4,
            ),
        ),
        "ece", largest=10**6,
    ),
    Task(
        "bs_10", "Brier score, 10 classes", "ten classes", "cal.brier_score(y, p, scale='sum')",
        (
            Peer("scikit-learn", _SKLEARN, "brier_score_loss(y, p)"),
            _probmetrics("brier", "p"),
            _reliably("brier(y, p, ci=None).value"),
            Peer("smartcal", _SMARTCAL, "calculate_brier_score(y, p)"),
        ),
        "bs",
    ),
    Task(
        "nll_10", "negative log likelihood, 10 classes", "ten classes", "cal.negative_log_likelihood(y, p)",
        (
            Peer("scikit-learn", _SKLEARN, "log_loss(y, p)"),
            _probmetrics("logloss", "p"),
            _reliably("nll(y, p, ci=None).value"),
        ),
        "nll",
    ),
    Task(
        "sr_10", "success rate (accuracy), 10 classes", "ten classes", "cal.success_rate(y, p)",
        (Peer("scikit-learn", _SKLEARN, "accuracy_score(y, p.argmax(axis=1))"),),
        "sr",
    ),
    Task(
        "rps_10", "ranked probability score, 10 classes", "ten classes",
        "cal.ranked_probability_score(y, p, normalize=False)",
        (Peer("scoringrules", "import scoringrules; first = y + 1", "scoringrules.rps_score(first, p).mean()"),),
        "rps",
    ),
    Task(
        "ece_top", "top-label ECE, 10 classes", "ten classes", "cal.expected_calibration_error(y, p)",
        (
            Peer(
                "torchmetrics", _TORCHMETRICS + _TORCH_K,
                "multiclass_calibration_error(tp, ty, num_classes=10, n_bins=15, **unchecked)",
                why=SINGLE_PRECISION,
            ),
            Peer("netcal", _NETCAL, "ece15.measure(p, y)"),
            Peer("uncertainty-calibration", _KUMAR, "calibration.get_ece(p, y)"),
            _probmetrics("ece-15", "p"),
            _reliably("ece(y, p, ci=None).value"),
            Peer("smartcal", _SMARTCAL, "ece15.compute(p, p.argmax(axis=1), y)"),
        ),
        "ece",
    ),
    Task(
        "ece_classes", "class-wise ECE, 10 classes", "ten classes",
        "cal.expected_calibration_error(y, p, lens='class-wise')",
        (
            Peer("uncertainty-calibration", _KUMAR, "calibration.get_ece(p, y, mode='marginal')"),
            _reliably("classwise_ece(y, p, binning='equal_width', ci=None).value"),
            Peer(
                "MAPIE", _MAPIE,
                "expected_calibration_error(None, p, num_bins=15, split_strategy='uniform', classwise=True,"
                " class_labels=y)",
                "cal.expected_calibration_error(y, p, lens='class-wise', n_bins=14)", ONE_BIN_FEWER,
            ),
        ),
        "ece",
    ),
    Task(
        "ece_predicted", "ECE within each predicted class, 10 classes", "ten classes",
        "cal.expected_calibration_error(y, p, lens='predicted-class')",
        (
            Peer(
                "MAPIE", _MAPIE, "top_label_ece(y, p, num_bins=15, split_strategy='uniform')",
                "cal.expected_calibration_error(y, p, lens='predicted-class', n_bins=14)",
                f"'top-label' of Gupta and Ramdas: conditional on the predicted class; {ONE_BIN_FEWER}",
            ),
        ),
        "ece",
    ),
    Task(
        "ce2_db_top", "root of the debiased squared error, top label, 10 classes", "ten classes",
        "cal.debiased_squared_calibration_error(y, p, root=True)",
        (
            Peer(
                "calibre", _CALIBRE, "calibre.top_label_ece(y, p, n_bins=15)",
                "cal.debiased_squared_calibration_error(y, p, root=True, mass_rule='floor')", DEBIASED_ROOT,
            ),
        ),
        "ce2_db",
    ),
    Task(
        "smece_10", "smooth calibration error, top label, 10 classes", "ten classes",
        "cal.smooth_calibration_error_residual(y, p)",
        (_probmetrics("smece", "p", why=f"{HALF_MIRROR} (it calls relplot)"),),
        "smece",
    ),
    Task(
        "matching", "detections matched to objects (number of hits)", "detections",
        "cal.match_detections(truth, results).correct.sum()",
        (
            Peer(
                "pycocotools",
                "from detection import by_pycocotools",
                "by_pycocotools(truth, results)", largest=10**5,
            ),
        ),
        largest=10**5,
    ),
    Task(
        "d_ece", "detection calibration error over score and position", "matched boxes",
        "cal.detection_expected_calibration_error(correct, score, box=box, image_size=(1, 1), features='location',"
        " n_bins=[10, 5, 5], min_count=1)",
        (
            Peer(
                "netcal", _NETCAL + "; import numpy as np; x = np.column_stack([score, box[:, :2] + box[:, 2:] / 2])",
                "cells.measure(x, correct)",
            ),
        ),
        "d_ece",
    ),
)  # fmt: skip

# -- the ordinary calls in which packages were found wrong or surprising: values only -----------------

_WITH_PHANTOM_BIN = (
    "cal.expected_calibration_error(y, c, edges=[*np.arange(10) / 10, np.nextafter(1, 0), 1], closed='left')"
)

SURPRISES = (
    Task(
        "ten_bins", "ECE with ten bins", "binary2000", "cal.expected_calibration_error(y, c, n_bins=10)",
        (
            Peer(
                "MAPIE", _MAPIE, "expected_calibration_error(y, c, num_bins=10, split_strategy='uniform')",
                "cal.expected_calibration_error(y, c, n_bins=9)", ONE_BIN_FEWER,
            ),
        ),
    ),
    Task(
        "file_order", "ECE with ten bins of equal mass", "binary2000",
        "cal.adaptive_calibration_error(y, c, n_bins=10, mass_rule='split')",
        (
            Peer(
                "MAPIE", _MAPIE, "expected_calibration_error(y, c, num_bins=10, split_strategy='array split')",
                why="bins are made of consecutive rows of the file, unsorted: another value after shuffling",
            ),
        ),
    ),
    Task(
        "confidence_one", "ECE when one confidence is exactly 1", "a one",
        "cal.expected_calibration_error(y, c, n_bins=10)",
        (
            Peer(
                "torchmetrics", _TORCHMETRICS + _TORCH, "binary_calibration_error(tc, ty, n_bins=10)",
                _WITH_PHANTOM_BIN, PHANTOM_BIN,
            ),
            Peer(
                "relplot", _RELPLOT, "binnedECE(c, y, nbins=10)",
                _WITH_PHANTOM_BIN, PHANTOM_BIN,
            ),
            Peer("netcal", _NETCAL, "ECE(10).measure(c, y)"),
            Peer("calibre", _CALIBRE, "calibre.expected_calibration_error(y, c, n_bins=10)"),
        ),
    ),
    Task(
        "confidence_zero", "ECE when one confidence is exactly 0", "a zero",
        "cal.expected_calibration_error(y, c, n_bins=10)",
        (
            Peer(
                "calzone-tool", _CALZONE,
                "calculate_ece_mce(*(v for v in reliability_diagram(y, two, num_bins=10, class_to_plot=1)"
                " if len(v) == 10))[0]",
                "cal.expected_calibration_error(y[c > 0], c[c > 0], n_bins=10)",
                "bins are open on the left, also the first: a confidence of exactly 0 is left out",
            ),
            Peer("torchmetrics", _TORCHMETRICS + _TORCH, "binary_calibration_error(tc, ty, n_bins=10)"),
        ),
    ),
    Task(
        "mmce_1d", "maximum mean calibration error of P(class 1)", "binary2000",
        "cal.maximum_mean_calibration_error(y, c)",
        (
            Peer(
                "netcal", _NETCAL, "mmce.measure(c, y)",
                why="compares P(class 1) with 'the thresholded prediction was right': not 0 for a calibrated model. "
                "Two columns are right there, and mean the predicted class (our lens='top-label')",
            ),
        ),
    ),
    Task(
        "logits", "a probability above 1", "out of range", "cal.expected_calibration_error(y, c)",
        (
            Peer(
                "torchmetrics", _TORCHMETRICS + _TORCH, "binary_calibration_error(tc, ty, n_bins=15)",
                "cal.expected_calibration_error(y, cal.sigmoid(c))",
                "one value outside [0, 1], and all of them silently pass through a sigmoid",
            ),
        ),
    ),
    Task(
        "missing", "a missing probability", "a gap", "cal.debiased_squared_calibration_error(y, c)",
        (
            Peer(
                "uncertainty-calibration", _KUMAR, "calibration.get_calibration_error(c, y)",
                why="input is not checked: a missing value goes into some bin and a number comes back",
            ),
        ),
    ),
    Task(
        "one_class", "Kolmogorov-Smirnov p-value when only one class occurred", "one class",
        "cal.test('ecce_mad', y, c, method='asymptotic').pvalue",
        (
            Peer(
                "MAPIE", _MAPIE, "kolmogorov_smirnov_p_value(y, c)",
                why="one minus a cumulative series: rounding decides below 1e-9, even the sign",
            ),
        ),
    ),
    Task(
        "kuiper_start", "Kuiper statistic when all cumulative sums are positive", "one side",
        "cal.test('ecce_r', y, c, method='asymptotic').normalised",
        (
            Peer(
                "MAPIE", _MAPIE, "kuiper_statistic(y, c)",
                "np.ptp(np.cumsum((y - c)[np.argsort(c)])) / np.sqrt((c * (1 - c)).sum())", NO_START,
            ),
        ),
    ),
    Task(
        "smooth_top", "smooth calibration error of the predicted class", "binary2000",
        "cal.smooth_calibration_error_residual(y, c, lens='top-label')",
        (
            _reliably(
                "smece(y, c, ci=None).value",
                "under the name smECE, the mean gap of a kernel regression whose bandwidth follows from N alone",
            ),
        ),
    ),
    Task(
        "debiased_cut", "root of the debiased squared error of the predicted class", "binary2000",
        "cal.debiased_squared_calibration_error(y, c, root=True, lens='top-label')",
        (
            _reliably(
                "debiased_ece(y, c, ci=None).value",
                "a negative estimate of a bin is cut to 0 before the sum, which puts the bias back",
            ),
        ),
    ),
    Task(
        "tied", "equal-mass ECE when all confidences are equal", "all equal", "cal.adaptive_calibration_error(y, c)",
        (
            Peer(
                "netcal", _NETCAL, "mass15.measure(c, y)",
                why="equal quantiles make edges that do not increase",
            ),
        ),
    ),
    Task(
        "spiegelhalter_half", "Spiegelhalter's z when every prediction is 0.5", "all equal",
        "cal.spiegelhalter_z(y, c)",
        (
            Peer("MAPIE", _MAPIE, "spiegelhalter_statistic(y, c)", why=UNDEFINED),
            Peer("calzone-tool", _CALZONE, "spiegelhalter_z_test(y, two)[0]", why=UNDEFINED),
        ),
    ),
    Task(
        "laplace", "Laplace kernel calibration error", "binary2000", "cal.laplace_kernel_calibration_error(y, c)",
        (
            Peer(
                "relplot", _RELPLOT, "laplace_calibration_approx(c, y)", random=True,
                why="unseeded pair sampling: another value at every call, and the last row is never drawn",
            ),
        ),
    ),
    Task(
        "smooth", "smooth calibration error", "binary2000", "cal.smooth_calibration_error_residual(y, c)",
        (Peer("relplot", _RELPLOT, "smECE(c, y)", why=HALF_MIRROR),),
    ),
    Task(
        "two_columns", "Brier score of two columns", "binary2000", "cal.brier_score(y, two)",
        (_probmetrics("brier", same="cal.brier_score(y, two, scale='sum')", why=BOTH_COLUMNS),),
    ),
    Task(
        "top_label", "top-label ECE, 4 classes", "multi4", "cal.expected_calibration_error(y, p)",
        (
            Peer("netcal", _NETCAL, "ece15.measure(p, y)"),
            Peer(
                "MAPIE", _MAPIE, "top_label_ece(y, p, num_bins=15, split_strategy='uniform')",
                "cal.expected_calibration_error(y, p, lens='predicted-class', n_bins=14)",
                f"conditional on the predicted class (Gupta and Ramdas), another lens; {ONE_BIN_FEWER}",
            ),
            Peer(
                "calibre", _CALIBRE, "calibre.top_label_ece(y, p, n_bins=15)",
                "cal.debiased_squared_calibration_error(y, p, root=True, mass_rule='floor')", DEBIASED_ROOT,
            ),
        ),
    ),
    Task(
        "class_wise", "class-wise ECE, 4 classes", "multi4", "cal.expected_calibration_error(y, p, lens='class-wise')",
        (
            Peer("uncertainty-calibration", _KUMAR, "calibration.get_ece(p, y, mode='marginal')"),
            Peer(
                "calibre", _CALIBRE, "calibre.classwise_ece(y, p, n_bins=15)",
                "cal.debiased_squared_calibration_error(y, p, root=True, lens='class-wise', mass_rule='floor',"
                " average=None).mean()",
                DEBIASED_ROOT,
            ),
        ),
    ),
    Task(
        "kuiper_classes", "Kuiper calibration error, 4 classes", "multi4", "cal.kuiper_calibration_error(y, p)",
        (
            _probmetrics(
                "kuiper", "p",
                why="takes the class number 0..3 for the outcome and column 1 for its probability: out of range",
            ),
        ),
    ),
    Task(
        "zero_based", "ranked probability score with classes 0..4", "ordinal5",
        "cal.ranked_probability_score(y, p, normalize=False)",
        (
            Peer(
                "scoringrules", "import scoringrules", "scoringrules.rps_score(y, p).mean()",
                why="its classes count from 1 and are not checked: pass y + 1",
            ),
        ),
    ),
)  # fmt: skip
