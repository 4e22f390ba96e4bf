"""The review's Table 2 and Fig. 1 as data: its 82 rows, and the sub-families its sections describe.

The columns (type, range, proper, hypothesis test, pros, cons, references) state what the table prints, in our words,
even if the catalogue disagrees; the corrections of the catalogue's entry then state the difference.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SUBFAMILIES", "TABLE_2", "Table2Row"]

#: The sub-families of Fig. 1 by their section, and the two quantities that section 9 adds to them.
SUBFAMILIES: dict[str, str] = {
    "3.3": "Brier score",
    "3.4": "logarithmic",
    "3.5": "global",
    "3.6": "success rate",
    "3.7": "normalised squares",
    "3.8": "p-norms and variants",
    "3.9": "Spiegelhalter z",
    "3.10": "alpha scores",
    "3.11": "soft F1",
    "3.12": "losses for isotonic regression",
    "3.13": "consistency",
    "3.14": "ranked probability",
    "4.2": "expected calibration error",
    "4.5": "variants of ECE",
    "4.6": "fit on the test, bins",
    "4.7": "interval error",
    "4.8": "signed error",
    "4.9": "soft bins",
    "4.10": "de-biased and grouped",
    "4.12": "binned tests",
    "4.13": "overlapping bins",
    "4.14": "other binned",
    "5.2": "smooth curve",
    "5.3": "pairwise",
    "5.4": "smoothed density",
    "5.5": "reliability map",
    "5.6": "smooth calibration error",
    "5.7": "logit smoothing",
    "5.8": "integrated index, percentiles",
    "5.9": "estimated index",
    "5.10": "fit on the test, curves",
    "5.11": "Cox intercept and slope",
    "5.12": "kernel and curve tests",
    "6.1": "cumulative error",
    "7.2": "average error",
    "7.3": "detection ECE",
    "7.4": "localisation-aware",
    "7.5": "kernel estimator",
    "7.6": "with false negatives",
    "9.2": "distance from calibration",
    "9.3": "error at a level",
}


class Table2Row(NamedTuple):
    """One row of Table 2: ``type``, ``range``, ``proper`` and ``test`` as printed; ``cites`` are reference numbers."""

    id: str
    name: str
    family: str
    section: str
    type: str
    range: str
    proper: str
    test: str
    cites: tuple[int, ...]
    pros: tuple[str, ...]
    cons: tuple[str, ...]


Row = Table2Row  # its name in 0.2, which pickles and imports may have


_PROS = {
    "used": "in wide use",
    "often": "often used",
    "clear": "easy to understand",
    "plain": "can be understood at once",
    "cheap": "simple to compute",
    "fairly-cheap": "not hard to compute",
    "size": "hardly affected by the size of the test set",
    "hard": "gives more weight to rows that are hard or misclassified",
    "trains": "as a training loss it calibrates better than the log loss",
    "sign": "distinguishes over- from under-confidence",
    "sign0": "distinguishes over- from under-confidence (0 is perfect)",
    "sign1": "distinguishes over- from under-confidence (1 is perfect)",
    "beyond": "its theory also holds for models other than classifiers",
    "gradient": "differentiable, so it can be optimised",
    "spread": "takes the stated uncertainty into account",
    "rare": "can be used to study rare classes",
    "outliers": "outliers have little weight",
    "derivatives": "has continuous derivatives of every order",
    "few-errors": "gives more weight to errors if there are few of them",
    "ordinal": "suitable for ordered classes",
    "counts": "suitable for infinitely many classes",
    "quadratic": "grows with the square of the distance between classes",
    "asymmetric": "does not favour symmetric predictions",
    "above-ece": "better than ECE",
    "tiny": "many tiny probabilities do not dominate the average",
    "imbalance": "suitable for imbalanced classes",
    "no-settings": "no parameters to set",
    "no-settings-bins": "no parameters to set, unlike most binned metrics",
    "low-bias": "little bias",
    "bad-classes": "penalises single classes with a high ECE",
    "worst": "shows the worst case, which safety may require",
    "vectors": "measures the calibration of whole probability vectors",
    "some-vectors": "designed for several classes",
    "bins-found": "chooses its number of bins itself",
    "bins-averaged": "averaging over numbers of bins makes it smoother",
    "classes": "works for several classes",
    "class-counts": "takes into account how many classes are over-confident and how many under-confident",
    "near-ece": "closer to the theoretical ECE than SBECE",
    "unbiased-bins": "unbiased, unlike most binned metrics",
    "unbiased": "unbiased",
    "density": "takes opposite errors in dense and in sparse regions into account",
    "cancelling": "over- and under-confidence cancel less",
    "strict": "stricter than ECE",
    "any-group": "more general than PIECE: any groups can be used",
    "groupings": "can average over several groupings",
    "bins-varied": "varying the number of bins makes it smoother",
    "bins-arranged": "includes a method of choosing the bins",
    "overlap": "overlapping bins make it smoother",
    "below-rivals": "less biased than ECE with equal widths, the sweep and the de-biased ECE",
    "accuracy-too": "measures calibration and accuracy at once",
    "like-bs": "resembles the Brier score, which is well known",
    "like-ece": "resembles ECE, which helps acceptance",
    "simple": "simple definition, easy to interpret",
    "definition": "simple definition",
    "fairly-simple": "fairly simple definition",
    "smooth": "smoother than binned metrics",
    "smoothest": "smoother than other kernel metrics and all binned ones",
    "residuals": "smoothing the residuals gives it better properties",
    "mirrored": "the mirrored kernel removes the bias at the ends",
    "consistent-fast": "a consistent measure that needs few rows and little time",
    "consistent": "a consistent measure",
    "consistent-debiased": "consistent and de-biased",
    "consistent-asymptotic": "consistent, and unbiased as rows are added",
    "linear": "linear cost, O(N)",
    "above-nll": "more stable than the log loss",
    "laplace": "the Laplace kernel is consistent, the Gaussian is not",
    "steady-sice": "its curve varies less than that of SICE",
    "steady-lkce": "its curve is smoother than that of LKCE",
    "any-k": "works for any number of classes",
    "above-bins": "detects calibration errors better than all binned metrics",
    "above-some": "better results than some others",
    "dense": "dense regions have more weight than sparse ones, which makes it more stable",
    "above-ep": "better than the percentile",
    "pure": "measures calibration alone, unlike the Brier score",
    "best-diagram": "the best of all compared metrics for the reliability diagram",
    "second-diagram": "only ECE-PL has a better reliability diagram",
    "third-diagram": "only ECE-PL and ECE-PL3 have better reliability diagrams",
    "ranks": "ranks recalibration methods better than the average metric and than ECE-PL3",
    "best-estimate": "the best of all compared metrics for the size of the error",
    "explains": "easier to explain than ECE-PL3",
    "temperature": "temperature scaling is a special case",
    "aspects": "shows more than one aspect of calibration",
    "classic": "a classic metric",
    "uniform": "every confidence has the same weight, however many rows have it",
    "assumption-free": "makes no assumptions",
    "top-r": "generalises to the top r classes",
    "readable": "easy to interpret",
    "empty-bins": "all bins have the same weight, so detections of low confidence do not dominate it",
    "as-ece": "has the advantages of ECE",
    "boxes": "can use the position and shape of boxes",
    "maps": "shows a map of ECE over the image",
    "iou": "uses the overlap of boxes",
    "balanced": "all classes have the same weight",
    "no-settings-laece": "no parameters to set, unlike LAECE",
    "fine": "resolves confidences more finely than bins do",
    "like-bkde": "extends BKDE to detection",
    "misses": "counts false negatives",
    "rewards": "asymmetric: a confident true positive gains more than an unconfident false positive",
    "sensitive": "a little more sensitive than QGC",
}
_CONS = {
    "mixes": "mixes calibration with accuracy",
    "accuracy": "perfect only if the model is always right",
    "less-used": "used less than the Brier score",
    "outliers": "a few outliers or wrong labels change it a lot",
    "focus": "needs a focusing parameter",
    "loss": "more a training loss than a metric",
    "top-only": "computed for the top class only",
    "extremes": "dominated by confidences near 0 and 1",
    "crude": "very crude: opposite errors cancel to a perfect value",
    "crude-top": "very crude: uses only whether the top class is right, not its probability",
    "not-strictly": "proper, but not strictly",
    "moments": "uses only two moments of a distribution",
    "rare-use": "little used for classifiers",
    "below-bs": "worse than the Brier score",
    "unworthy": "almost never worth reporting",
    "model": "needs access to the model itself",
    "heavy": "computationally expensive for large models",
    "difficult": "difficult to compute",
    "setting": "needs a parameter",
    "bins": "needs a number of bins",
    "settings": "needs several parameters",
    "width": "needs a kernel width",
    "temperature": "needs a temperature",
    "sigma": "needs a width sigma",
    "window": "needs a window length",
    "balance": "needs a weight for accuracy against calibration",
    "small-setting": "needs a parameter, which has little effect",
    "odd-p": "exponents other than 1, 2 and infinity are rare",
    "chebyshev": "with p infinite it depends on a single row",
    "odd-range": "has an unusual range",
    "below-hl": "less powerful than the Hosmer-Lemeshow test",
    "obscure": "hard to interpret",
    "pls": "its special case PLS is better known",
    "is-bs": "equals the Brier score for two classes",
    "bs-known": "its special case for two classes, the Brier score, is better known",
    "linear": "grows only linearly with the distance between classes",
    "symmetric": "has a hidden preference for symmetric predictions",
    "no-order": "not suitable for classes without an order",
    "below-rps": "less used than RPS",
    "sparse": "sparse bins of fixed width make it noisy",
    "top": "uses the most likely class only",
    "sharpness": "mixes calibration with sharpness",
    "scale": "depends on the scale of the probabilities",
    "jumps": "discontinuous in the confidences",
    "jumps-much": "very discontinuous in the confidences",
    "criticised": "criticised more than any other metric",
    "leaves-out": "leaves some rows out",
    "as-ece": "has the disadvantages of ECE",
    "placement": "depends heavily on the position of the bins",
    "folds": "cross-validation is slow and a little complicated",
    "monte-carlo": "Monte Carlo is slow and more complicated",
    "assurance": "uses random numbers, which do not suit assurance",
    "below-lkce": "not as good as the Laplace kernel error",
    "cancelling": "over-confident and under-confident classes cancel, which can hide a single bad class",
    "far-ece": "further from the theoretical ECE than DECE",
    "squares": "squared values are unusual among binned metrics and harder to interpret",
    "features": "needs feature vectors, which may not be available",
    "thin": "its bins in two dimensions contain fewer rows than those of ECE",
    "thinner": "its bins in several dimensions contain fewer rows than those of ECE, perhaps than those of PIECE",
    "unintuitive": "less intuitive than other binned metrics",
    "oversensitive": "rejects for the smallest miscalibration if there are many rows",
    "complicated": "complicated definition",
    "slower": "slower than ECE",
    "any-rejects": "may be oversensitive: it rejects as soon as one number of bins does",
    "manual": "k must be chosen partly by hand",
    "accuracy-too": "measures calibration and accuracy at once",
    "unusual": "unlike other binned metrics",
    "two-bins": "crude: with two classes it has only two bins",
    "unused": "not used outside its own source",
    "edges": "the Gaussian kernel is biased at the ends",
    "square-cost": "slow for many rows: O(N^2)",
    "square-cost-approx": "slow for many rows: O(N^2), though a linear approximation exists",
    "namesake-smece": "shares its full name with SMECE, which has better properties",
    "namesake-sece": "shares its full name with SECE",
    "mirrored": "the mirrored kernel is harder to compute",
    "less-simple": "a slightly less simple definition than SECE",
    "slightly-complex": "a slightly complicated definition",
    "two-classes": "for two classes or class by class only",
    "weighted": "its version for several classes is complicated",
    "biased-inconsistent": "biased and inconsistent",
    "below-sce": "less smooth than the smooth calibration error (SCE)",
    "many-classes": "becomes worse with many classes, from a number between 100 and 1000 on",
    "class-cost": "expensive for many classes, so used for the top label or class by class",
    "biased": "biased",
    "more-rows": "needs more rows than other kernel methods",
    "involved": "its definition is not simple",
    "no-classifiers": "has not been analysed for classifiers",
    "below-ici": "not as good as ICI",
    "harder": "harder to explain than ECE-PL",
    "falls-back": "its rank among the metrics falls as the number of rows grows",
    "two-numbers": "has two numbers, which makes it hard to compare many recalibration methods",
    "stiff": "less flexible than ECE-PL3",
    "beta-fit": "only as good as the fit of the beta curve",
    "significant": "with many rows it is (rightly) significant even if the effect is small",
    "flat-weights": "all bins have the same weight, so confident bins with many rows cannot count more",
    "no-misses": "does not count false negatives",
    "box-bins": "with box features its bins become sparse: the value is noisy, or rows are left out",
    "iou-choice": "the overlap threshold is hard to choose (except for LAECE0)",
    "unbalanced": "classes do not have the same weight, unlike in LAECE",
    "class-wise": "measures calibration class by class, not of whole vectors",
    "sum-or-mean": "exists as a sum and as a mean",
    "mean": "as a mean it has some undesirable properties",
}

# number id family section name | type | range | proper | test | references | pros | cons
_ROWS = """
1 bs point 3.3 Brier score | Point | [0, 1] | yes | no | 21 69 | used clear cheap size | mixes accuracy
2 rbs point 3.3 root Brier score | Point | [0, 1] | yes | no | 22 | clear cheap size | mixes accuracy less-used
3 nll point 3.4 negative log likelihood | Point | [0, inf] | yes | no | 24 | used cheap | mixes accuracy outliers
4 fl point 3.4 focal loss | Point | [0, inf] | no | no | 68 | hard trains | focus loss top-only
5 ecd point 3.4 entropic calibration difference | Point | [-inf, inf] | yes | no | 70 | cheap sign0 beyond | extremes
6 gsb point 3.5 global squared bias | Point | [0, 1] | unknown | no | 17 | plain cheap | crude
7 mdca point 3.5 multiclass difference of confidence and accuracy | Point | [0, 1] | unknown | no | 28 | plain cheap gradient | crude loss
8 eo point 3.5 expected/observed ratio | Point | [0, inf] | unknown | no | 64 | plain cheap sign1 | crude
9 sr point 3.6 success rate | Point | [0, 1] | yes | no | 21 | plain cheap | crude-top
10 dss point 3.7 Dawid-Sebastiani score | Point | [0, inf] | yes | no | 50 | cheap spread | not-strictly moments
11 nses point 3.7 normalised squared error score | Point | [0, inf] | no | no | 50 | cheap spread sign1 | rare-use
12 mae point 3.8 mean absolute error | Point | [0, 1] | no | no | 15 34 | cheap | below-bs unworthy
13 eice point 3.8 expected individual calibration error | Point | [0, 1] | yes | no | 85 | rare | model heavy difficult
14 pwe point 3.8 pointwise lp error | Point | [0, 1] | no | no | 43 | cheap | setting odd-p chebyshev
15 l1eps point 3.8 l1-epsilon error | Point | ~[0, 1] | unknown | no | 43 | cheap outliers derivatives | setting odd-range
16 spiegelhalter point 3.9 Spiegelhalter z test | Point | [-inf, inf] | unknown | yes | 31 | cheap sign0 | below-hl
17 pss point 3.10 pseudo-spherical score | Point | [0, inf] | yes | no | 10 | cheap | setting obscure
18 ps point 3.10 power score | Point | [0, 1] | yes | no | 14 | cheap | setting pls
19 pls point 3.10 proper linear score | Point | [0, 1] | yes | no | 10 | cheap | is-bs
20 sf1 point 3.11 soft F1 score | Point | [0, 1] | unknown | no | 29 | few-errors | obscure
21 rps point 3.14 ranked probability score | Point | [0, 1] | yes | no | 18 | ordinal counts | bs-known linear symmetric no-order
22 sarps point 3.14 squared absolute ranked probability score | Point | [0, 1] | unknown | no | 18 | ordinal counts quadratic asymmetric | below-rps no-order
23 ece bin 4.2 expected calibration error | Bin | [0, 1] | no | no | 24 69 | clear cheap used | bins sparse top sharpness scale jumps-much criticised
24 ace bin 4.5 adaptive calibration error | Bin | [0, 1] | no | no | 55 | clear cheap often above-ece | bins sharpness jumps
25 tace bin 4.5 thresholded adaptive calibration error | Bin | [0, 1] | no | no | 55 23 | cheap above-ece tiny | settings jumps
26 ice bin 4.5 imbalanced calibration error | Bin | [0, 1] | no | no | 23 | cheap imbalance tiny | bins jumps
27 rbece bin 4.5 region-balanced calibration error | Bin | [0, 1] | no | no | 13 | cheap imbalance tiny | leaves-out settings jumps
28 ece_lb bin 4.5 label-binned calibration error | Bin | [0, 1] | no | no | 67 | cheap above-ece | settings jumps
29 ece_sweep bin 4.5 sweep calibration error | Bin | [0, 1] | no | no | 67 | above-ece no-settings-bins low-bias | jumps
30 cece bin 4.5 contraharmonic calibration error | Bin | [0, 1] | no | no | 56 | cheap bad-classes | as-ece
31 mce bin 4.5 maximum calibration error | Bin | [0, 1] | no | no | 24 | worst | bins sparse placement jumps-much
32 mvms bin 4.5 mean-split calibration error | Bin | [0, 1] | no | no | 75 | some-vectors above-ece | settings jumps
33 ece_fott bin 4.6 fit-on-the-test calibration error | Bin | [0, 1] | no | no | 32 | above-ece no-settings-bins | folds jumps
34 sice bin 4.7 surrogate interval calibration error | Bin | [0, 1] | no | no | 7 | above-ece bins-found | monte-carlo assurance small-setting jumps below-lkce
35 esce bin 4.8 expected signed calibration error | Bin | [-1, 1] | no | no | 78 | sign bins-averaged | jumps
36 wsmcs bin 4.8 weighted subset miscalibration score | Bin | [-1, 1] | no | no | 78 | sign classes class-counts | cancelling jumps
37 sbece bin 4.9 soft-binned calibration error | Bin | [0, 1] | no | no | 33 | gradient | temperature far-ece
38 dece bin 4.9 differentiable calibration error | Bin | [0, 1] | no | no | 9 | gradient near-ece | temperature
39 ce2_db bin 4.10 debiased squared calibration error | Bin | (-eps, 1) | unknown | yes | 38 | unbiased-bins | squares as-ece
40 ece_db bin 4.10 debiased calibration error | Bin | (-eps, 1) | no | yes | 38 | unbiased-bins | monte-carlo assurance as-ece
41 piece bin 4.10 proximity-informed calibration error | Bin | [0, 1] | no | no | 86 | density cancelling strict | features thin
42 pce bin 4.10 partitioned calibration error | Bin | [0, 1] | no | no | 87 | any-group groupings cancelling strict | features thinner
43 hl bin 4.12 Hosmer-Lemeshow test | Bin | [0, inf] | no | yes | 31 | used | bins unintuitive oversensitive jumps
44 tcal bin 4.12 T-Cal test | Bin | (-eps, 1) | no | yes | 42 | unbiased-bins bins-varied above-ece | complicated settings squares slower any-rejects
45 tce bin 4.12 test-based calibration error | Bin | [0, 1] | no | yes | 47 | imbalance bins-arranged above-ece | complicated slower jumps
46 calbin bin 4.13 CalBin | Bin | [0, 1] | no | no | 6 | overlap above-ece | window
47 ece_knn bin 4.13 nearest-neighbour calibration error | Bin | [0, 1] | no | no | 60 | overlap below-rivals | manual
48 hcs bin 4.14 harmonic calibration score | Bin | [0, 1] | no | no | 72 | accuracy-too | balance accuracy-too
49 wcr bin 4.14 well-calibration ratio | Bin | [0, 1] | no | no | 19 | vectors | complicated unusual two-bins unused
50 msce kernel 5.2 mean squared calibration error | Kernel | [0, 1] | no | no | 17 | like-bs simple smooth | width edges square-cost
51 sece kernel 5.2 smooth label calibration error | Kernel | [0, 1] | no | no | 81 | simple smooth | width edges square-cost namesake-smece
52 smece kernel 5.2 smooth calibration error of residuals | Kernel | [0, 1] | no | no | 8 | residuals mirrored consistent-fast no-settings smooth linear | mirrored less-simple namesake-sece
53 dkde kernel 5.2 Dirichlet kernel calibration error | Kernel | [0, 1] | no | no | 62 | vectors consistent-debiased gradient smooth | slightly-complex square-cost
54 bkde kernel 5.2 beta kernel calibration error | Kernel | [0, 1] | no | no | 62 | consistent-debiased gradient smooth | two-classes square-cost
55 mmce kernel 5.3 maximum mean calibration error | Kernel | [0, 1] | no | no | 37 | classes above-nll smooth | weighted biased-inconsistent square-cost
56 lkce kernel 5.3 Laplace kernel calibration error | Kernel | [0, 1] | no | no | 37 7 | laplace steady-sice smooth | square-cost-approx below-sce
57 skce_ul kernel 5.3 squared kernel calibration error, linear estimator | Kernel | [-eps, 1] | no | yes | 83 | unbiased vectors linear smooth | many-classes
58 skce_uq kernel 5.3 squared kernel calibration error, quadratic estimator | Kernel | [-eps, 1] | no | yes | 83 | unbiased vectors any-k smooth | monte-carlo assurance square-cost
59 skde kernel 5.4 kernel density calibration error | Kernel | [0, 1] | no | no | 88 | above-bins smoothest linear | slightly-complex class-cost biased
60 ls_ecoc_r curve 5.5 reliability map score | Kernel | [0, 1] | no | no | 35 | low-bias above-some smooth | settings complicated more-rows
61 sce kernel 5.6 Lipschitz calibration error | Kernel | [-1, 1] | no | no | 7 | consistent steady-lkce steady-sice smooth | involved square-cost
62 lsece kernel 5.7 logit-smoothed calibration error | Kernel | [0, 1] | no | no | 11 | smooth | sigma assurance square-cost
63 kccsd kernel 5.12 kernel calibration conditional Stein discrepancy | Kernel | [0, 1] | no | yes | 20 | vectors smooth beyond | monte-carlo no-classifiers
64 ici curve 5.8 integrated calibration index | Curve | [0, 1] | no | no | 31 3 | fairly-simple like-ece cheap dense above-ep | settings square-cost
65 ep curve 5.8 calibration error percentile | Curve | [0, 1] | no | no | 3 | fairly-simple cheap dense | settings below-ici square-cost
66 eci curve 5.9 estimated calibration index | Curve | [0, 1] | no | no | 76 | like-bs pure smooth | involved
67 ece_pl curve 5.10 piecewise linear calibration error | Curve | [0, 1] | no | no | 32 | best-diagram ranks like-ece no-settings explains linear | folds
68 ece_pl3 curve 5.10 piecewise linear logit calibration error | Curve | [0, 1] | no | no | 32 | temperature second-diagram like-ece no-settings linear | folds harder
69 fott_beta curve 5.10 fit-on-the-test beta calibration error | Curve | [0, 1] | no | no | 32 | third-diagram best-estimate no-settings linear | folds falls-back
70 cis curve 5.11 Cox intercept and slope | Curve | [-inf, inf] [-inf, inf] | no | no | 31 | sign aspects no-settings classic linear | two-numbers stiff
71 sbct curve 5.12 statistical beta calibration test | Curve | [0, 1] | no | no | 36 | uniform fairly-cheap like-ece linear | beta-fit
72 pws curve 5.12 parabolic Wald test | Curve | [0, inf] | no | yes | 17 | fairly-cheap no-settings linear | obscure
73 ecce_mad cumulative 6.1 Kolmogorov-Smirnov calibration error | Cumulative | [0, 1] | no | yes | 2 | assumption-free no-settings above-ece top-r readable | significant
74 ecce_r cumulative 6.1 Kuiper calibration error | Cumulative | [0, 1] | no | yes | 2 | assumption-free no-settings above-ece | significant
75 average_calibration_error detection 7.2 average calibration error | Object / bin | [0, 1] | no | no | 54 | empty-bins as-ece | flat-weights no-misses as-ece
76 d_ece detection 7.3 detection expected calibration error | Object / bin | [0, 1] | no | no | 39 | boxes maps as-ece | box-bins no-misses as-ece
77 laece detection 7.4 localisation-aware expected calibration error | Object / bin | [0, 1] | no | no | 40 57 | iou balanced as-ece | iou-choice no-misses as-ece
78 laace detection 7.4 localisation-aware adaptive calibration error | Object / point | [0, 1] | no | no | 40 | iou no-settings-laece fine | unbalanced no-misses
79 l1cbod detection 7.5 detection kernel calibration error | Object / kernel | [0, 1] | no | no | 63 | like-bkde consistent-asymptotic gradient | width class-wise no-misses
80 egce detection 7.6 expected global calibration error | Object / bin | [0, 1] | no | no | 12 | misses rewards as-ece | settings sum-or-mean mean as-ece
81 qgc detection 7.6 quadratic global calibration | Object / point | [0, 1] | yes | no | 12 | misses like-bs definition | sum-or-mean mean
82 sgc detection 7.6 spherical global calibration | Object / point | [0, 1] | yes | no | 12 | misses sensitive | sum-or-mean mean
"""  # noqa: E501  (a row is a line)


def _read(line: str) -> tuple[int, Table2Row]:
    head, kind, range_, proper, test, cites, pros, cons = (part.strip() for part in line.split("|"))
    number, id, family, section, name = head.split(" ", 4)
    return int(number), Table2Row(
        id, name, family, section, kind, range_, proper, test,
        tuple(map(int, cites.split())),
        tuple(_PROS[word] for word in pros.split()),
        tuple(_CONS[word] for word in cons.split()),
    )  # fmt: skip


#: The rows by their number, counted from the top of the table.
TABLE_2: dict[int, Table2Row] = dict(_read(line) for line in _ROWS.strip().splitlines())
