"""The 82 rows of the review's Table 2: number -> (id, name, family)."""

from __future__ import annotations

_ROWS = """
1 bs point Brier score
2 rbs point root Brier score
3 nll point negative log likelihood
4 fl point focal loss
5 ecd point entropic calibration difference
6 gsb point global squared bias
7 mdca point multiclass difference of confidence and accuracy
8 eo point expected/observed ratio
9 sr point success rate
10 dss point Dawid-Sebastiani score
11 nses point normalised squared error score
12 mae point mean absolute error
13 eice point expected individual calibration error
14 pwe point pointwise lp error
15 l1eps point l1-epsilon error
16 spiegelhalter point Spiegelhalter z test
17 pss point pseudo-spherical score
18 ps point power score
19 pls point proper linear score
20 sf1 point soft F1 score
21 rps point ranked probability score
22 sarps point squared absolute ranked probability score
23 ece bin expected calibration error
24 ace bin adaptive calibration error
25 tace bin thresholded adaptive calibration error
26 ice bin imbalanced calibration error
27 rbece bin region-balanced calibration error
28 ece_lb bin label-binned calibration error
29 ece_sweep bin sweep calibration error
30 cece bin contraharmonic calibration error
31 mce bin maximum calibration error
32 mvms bin mean-split calibration error
33 ece_fott bin fit-on-the-test calibration error
34 sice bin surrogate interval calibration error
35 esce bin expected signed calibration error
36 wsmcs bin weighted subset miscalibration score
37 sbece bin soft-binned calibration error
38 dece bin differentiable calibration error
39 ce2_db bin debiased squared calibration error
40 ece_db bin debiased calibration error
41 piece bin proximity-informed calibration error
42 pce bin partitioned calibration error
43 hl bin Hosmer-Lemeshow test
44 tcal bin T-Cal test
45 tce bin test-based calibration error
46 calbin bin CalBin
47 ece_knn bin nearest-neighbour calibration error
48 hcs bin harmonic calibration score
49 wcr bin well-calibration ratio
50 msce kernel mean squared calibration error
51 sece kernel smooth label calibration error
52 smece kernel smooth calibration error of residuals
53 dkde kernel Dirichlet kernel calibration error
54 bkde kernel beta kernel calibration error
55 mmce kernel maximum mean calibration error
56 lkce kernel Laplace kernel calibration error
57 skce_ul kernel squared kernel calibration error, linear estimator
58 skce_uq kernel squared kernel calibration error, quadratic estimator
59 skde kernel kernel density calibration error
60 ls_ecoc_r curve reliability map score
61 sce kernel Lipschitz calibration error
62 lsece kernel logit-smoothed calibration error
63 kccsd kernel kernel calibration conditional Stein discrepancy
64 ici curve integrated calibration index
65 ep curve calibration error percentile
66 eci curve estimated calibration index
67 ece_pl curve piecewise linear calibration error
68 ece_pl3 curve piecewise linear logit calibration error
69 fott_beta curve fit-on-the-test beta calibration error
70 cis curve Cox intercept and slope
71 sbct curve statistical beta calibration test
72 pws curve parabolic Wald test
73 ecce_mad cumulative Kolmogorov-Smirnov calibration error
74 ecce_r cumulative Kuiper calibration error
75 average_calibration_error detection average calibration error
76 d_ece detection detection expected calibration error
77 laece detection localisation-aware expected calibration error
78 laace detection localisation-aware adaptive calibration error
79 l1cbod detection detection kernel calibration error
80 egce detection expected global calibration error
81 qgc detection quadratic global calibration
82 sgc detection spherical global calibration
"""

TABLE_2: dict[int, tuple[str, str, str]] = {}
for _row in _ROWS.strip().splitlines():
    _number, _id, _family, _name = _row.split(" ", 3)
    TABLE_2[int(_number)] = (_id, _name, _family)
