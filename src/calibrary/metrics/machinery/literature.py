"""The publications that define the metrics: one record each, with one spelling of each author's name.

An entry refers to them by key, ``references=cited("brier1950")``. A work whose key starts with ``?`` in the table below
could not be compared with a published copy or a second source; its printed form says so.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LITERATURE", "Work", "cited"]


@dataclass(frozen=True)
class Work:
    """One published work. ``identifier`` is a DOI, an arXiv number, or empty where there is none."""

    authors: str
    year: int
    title: str
    venue: str
    identifier: str
    checked: bool

    def __str__(self) -> str:
        text = f"{self.authors} ({self.year}), {self.title}, {self.venue}"
        text += f", {self.identifier}" if self.identifier else ""
        return text if self.checked else f"{text} [from memory, not compared with a copy]"


def cited(*keys: str) -> tuple[str, ...]:
    """The printed form of works with these keys."""
    return tuple(str(LITERATURE[key]) for key in keys)


# key | authors | year | title | venue | identifier
_TABLE = """
?aitken1936 | Aitken | 1936 | On least squares and linear combination of observations | Proceedings of the Royal Society of Edinburgh 55, 42-48 | doi:10.1017/S0370164600014346
ao2023 | Ao, Rueger, Siddharthan | 2023 | Two sides of miscalibration: identifying over and under-confidence prediction for network calibration | UAI, PMLR 216, 77-87 | arXiv:2308.03172
arrieta2022 | Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu | 2022 | Metrics of calibration for probabilistic predictions | Journal of Machine Learning Research 23(351), 1-54 | arXiv:2205.09680
austin2019 | Austin, Steyerberg | 2019 | The integrated calibration index (ICI) and related metrics for quantifying the calibration of logistic regression models | Statistics in Medicine 38(21), 4051-4065 | doi:10.1002/sim.8281
baan2022 | Baan, Aziz, Plank, Fernandez | 2022 | Stop measuring calibration when humans disagree | EMNLP, 1892-1915 | arXiv:2210.16133
?bella2010 | Bella, Ferri, Hernández-Orallo, Ramírez-Quintana | 2010 | Calibration of machine learning models | Handbook of Research on Machine Learning Applications and Trends, IGI Global, 128-146 | doi:10.4018/978-1-60566-766-9.ch006
?bai2021 | Bai, Mei, Wang, Xiong | 2021 | Don't just blame over-parametrization for over-confidence: theoretical analysis of calibration in binary classification | ICML, PMLR 139 | arXiv:2102.07856
berta2025 | Berta, Holzmüller, Jordan, Bach | 2025 | Rethinking early stopping: refine, then calibrate | preprint | arXiv:2501.19195
berta2026 | Berta, Braun, Holzmüller, Bach, Jordan | 2026 | A variational estimator for Lp calibration errors | preprint | arXiv:2602.24230
blasiok2023 | Błasiok, Gopalan, Hu, Nakkiran | 2023 | A unifying theory of distance from calibration | STOC, 1727-1740 | arXiv:2211.16886
blasiok2024 | Błasiok, Nakkiran | 2024 | Smooth ECE: principled reliability diagrams via kernel smoothing | ICLR | arXiv:2309.12236
bohdal2023 | Bohdal, Yang, Hospedales | 2023 | Meta-calibration: learning of model calibration using differentiable expected calibration error | Transactions on Machine Learning Research | arXiv:2106.09613
brier1950 | Brier | 1950 | Verification of forecasts expressed in terms of probability | Monthly Weather Review 78(1), 1-3 | doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2
brocker2012 | Bröcker | 2012 | Estimating reliability and resolution of probability forecasts through decomposition of the empirical score | Climate Dynamics 39, 655-667 | doi:10.1007/s00382-011-1191-1
caruana2004 | Caruana, Niculescu-Mizil | 2004 | Data mining in metric space: an empirical analysis of supervised learning performance criteria | KDD, 69-78 | doi:10.1145/1014052.1014063
chidambaram2024 | Chidambaram, Lee, McSwiggen, Rezchikov | 2024 | How flawed is ECE? An analysis via logit smoothing | ICML, PMLR 235 | arXiv:2402.10046
?chu2004 | Chu, Keerthi, Ong | 2004 | Bayesian support vector regression using a unified loss function | IEEE Transactions on Neural Networks 15(1), 29-44 | doi:10.1109/TNN.2003.820830
cleveland1988 | Cleveland, Devlin | 1988 | Locally weighted regression: an approach to regression analysis by local fitting | Journal of the American Statistical Association 83(403), 596-610 | doi:10.1080/01621459.1988.10478639
conde2023 | Conde, Lopes, Premebida | 2023 | A theoretical and practical framework for evaluating uncertainty calibration in object detection | preprint | arXiv:2309.00464
cox1958 | Cox | 1958 | Two further applications of a model for binary regression | Biometrika 45(3-4), 562-565 | doi:10.1093/biomet/45.3-4.562
czado2009 | Czado, Gneiting, Held | 2009 | Predictive model assessment for count data | Biometrics 65(4), 1254-1261 | doi:10.1111/j.1541-0420.2009.01191.x
dawid1999 | Dawid, Sebastiani | 1999 | Coherent dispersion criteria for optimal experimental design | Annals of Statistics 27(1), 65-81 | doi:10.1214/aos/1018031101
dawkins2022 | Dawkins, Nejadgholi | 2022 | Region-dependent temperature scaling for certainty calibration and application to class-imbalanced token classification | ACL (short papers), 538-544 |
leeuw2009 | de Leeuw, Hornik, Mair | 2009 | Isotone optimization in R: pool-adjacent-violators algorithm (PAVA) and active set methods | Journal of Statistical Software 32(5), 1-24 | doi:10.18637/jss.v032.i05
dimitriadis2023 | Dimitriadis, Dümbgen, Henzi, Puke, Ziegel | 2023 | Honest calibration assessment for binary outcome predictions | Biometrika 110(3), 663-680 | doi:10.1093/biomet/asac068
?edlinger2022 | Edlinger, van Smeden, Alber, Wanitschek, Van Calster | 2022 | Risk prediction models for discrete ordinal outcomes: calibration and the impact of the proportional odds assumption | Statistics in Medicine 41(8), 1334-1360 | doi:10.1002/sim.9281
?efron1991 | Efron | 1991 | Regression percentiles using asymmetric squared error loss | Statistica Sinica 1(1), 93-125 |
epstein1969 | Epstein | 1969 | A scoring system for probability forecasts of ranked categories | Journal of Applied Meteorology 8(6), 985-987 | doi:10.1175/1520-0450(1969)008<0985:ASSFPF>2.0.CO;2
?fagerland2008 | Fagerland, Hosmer, Bofin | 2008 | Multinomial goodness-of-fit tests for logistic regression models | Statistics in Medicine 27(21), 4238-4253 | doi:10.1002/sim.3202
ferrer2024 | Ferrer, Ramos | 2024 | Evaluating posterior probabilities: decision theory, proper scoring rules, and calibration | Transactions on Machine Learning Research | arXiv:2408.02841
ferro2012 | Ferro, Fricker | 2012 | A bias-corrected decomposition of the Brier score | Quarterly Journal of the Royal Meteorological Society 138(668), 1954-1960 | doi:10.1002/qj.1924
flores2025 | Flores, Schiff, Smith et al. | 2025 | A consequentialist critique of binary classification evaluation: theory, practice, and tools | preprint | arXiv:2504.04528
galbraith2011 | Galbraith, van Norden | 2011 | Kernel-based calibration diagnostics for recession and inflation probability forecasts | International Journal of Forecasting 27(4), 1041-1057 |
galdran2023 | Galdran | 2023 | Performance metrics for probabilistic ordinal classifiers | MICCAI, LNCS 14222 | doi:10.1007/978-3-031-43898-1_35
?gebel2009 | Gebel | 2009 | Multivariate calibration of classifier scores into the probability space | PhD thesis, University of Dortmund |
?geifman2019 | Geifman, Uziel, El-Yaniv | 2019 | Bias-reduced uncertainty estimation for deep neural classifiers | ICLR | arXiv:1805.08206
?gentile1998 | Gentile, Warmuth | 1998 | Linear hinge loss and average margin | NIPS 11, 225-231 |
?glaser2023 | Glaser, Widmann, Lindsten, Gretton | 2023 | Fast and scalable score-based kernel calibration tests | UAI, PMLR 216, 691-700 |
gneiting2007 | Gneiting, Raftery | 2007 | Strictly proper scoring rules, prediction, and estimation | Journal of the American Statistical Association 102(477), 359-378 | doi:10.1198/016214506000001437
good1952 | Good | 1952 | Rational decisions | Journal of the Royal Statistical Society B 14(1), 107-114 | doi:10.1111/j.2517-6161.1952.tb00104.x
?good1971 | Good | 1971 | Comment on "Measuring information and uncertainty" by R. J. Buehler | Foundations of Statistical Inference (Godambe, Sprott, eds.), 337-339 |
gruber2022 | Gruber, Buettner | 2022 | Better uncertainty calibration via proper scores for classification and beyond | NeurIPS 35 | arXiv:2203.07835
grunwald2024 | Grünwald, de Heide, Koolen | 2024 | Safe testing | Journal of the Royal Statistical Society B 86(5), 1091-1128 | doi:10.1093/jrsssb/qkae011
guilbert2024 | Guilbert, Caelen, Chirita, Saerens | 2024 | Calibration methods in imbalanced binary classification | Annals of Mathematics and Artificial Intelligence 92, 1319-1352 | doi:10.1007/s10472-024-09952-8
guo2017 | Guo, Pleiss, Sun, Weinberger | 2017 | On calibration of modern neural networks | ICML, PMLR 70, 1321-1330 | arXiv:1706.04599
gupta2021 | Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu, Hartley | 2021 | Calibration of neural networks using splines | ICLR | arXiv:2006.12800
guy2025 | Guy, Haimovich, Linder, Okati, Perini, Tax, Tygert | 2025 | Measuring multi-calibration | preprint | arXiv:2506.11251
gweon2022 | Gweon | 2022 | A power-controlled reliability assessment for multi-class probabilistic classifiers | Advances in Data Analysis and Classification | doi:10.1007/s11634-022-00528-0
?hanley1982 | Hanley, McNeil | 1982 | The meaning and use of the area under a receiver operating characteristic (ROC) curve | Radiology 143(1), 29-36 | doi:10.1148/radiology.143.1.7063747
?harrell2015 | Harrell | 2015 | Regression modeling strategies | 2nd edition, Springer | doi:10.1007/978-3-319-19425-7
hartline2026 | Hartline, Hu, Wu | 2026 | A perfectly truthful calibration measure | COLT, PMLR 336 | arXiv:2508.13100
hebbalaguppe2022 | Hebbalaguppe, Prakash, Madan, Arora | 2022 | A stitch in time saves nine: a train-time regularizing loss for improved neural network calibration | CVPR, 16081-16090 | arXiv:2203.13834
?hebert2018 | Hébert-Johnson, Kim, Reingold, Rothblum | 2018 | Multicalibration: calibration for the (computationally-identifiable) masses | ICML, PMLR 80, 1939-1948 | arXiv:1711.08513
?hendrycks2019 | Hendrycks, Mazeika, Dietterich | 2019 | Deep anomaly detection with outlier exposure | ICLR | arXiv:1812.04606
henzi2023 | Henzi, Puke, Dimitriadis, Ziegel | 2023 | A safe Hosmer-Lemeshow test | New England Journal of Statistics in Data Science | arXiv:2203.00426
hosmer1980 | Hosmer, Lemeshow | 1980 | Goodness of fit tests for the multiple logistic regression model | Communications in Statistics - Theory and Methods 9(10), 1043-1069 | doi:10.1080/03610928008827941
hu2024 | Hu, Wu | 2024 | Predict to minimize swap regret for all payoff-bounded tasks | FOCS (the preprint is called Calibration error for decision making) | arXiv:2404.13503
huang2024 | Huang, Li, Yu et al. | 2024 | Uncertainty in language models: assessment through rank-calibration | EMNLP, 284-312 | doi:10.18653/v1/2024.emnlp-main.18
huber1964 | Huber | 1964 | Robust estimation of a location parameter | Annals of Mathematical Statistics 35(1), 73-101 | doi:10.1214/aoms/1177703732
?kakade2008 | Kakade, Foster | 2008 | Deterministic calibration and Nash equilibrium | Journal of Computer and System Sciences 74(1), 115-130 | doi:10.1016/j.jcss.2007.04.017
kangsepp2022 | Kängsepp, Valk, Kull | 2022 | On the usefulness of the fit-on-the-test view on evaluating calibration of classifiers | preprint | arXiv:2203.08958
karandikar2021 | Karandikar, Cain, Tran, Lakshminarayanan, Shlens, Mozer, Roelofs | 2021 | Soft calibration objectives for neural networks | NeurIPS 34 | arXiv:2108.00106
kleinberg2023 | Kleinberg, Paes Leme, Schneider, Teng | 2023 | U-calibration: forecasting for an unknown agent | COLT, PMLR 195 | arXiv:2307.00168
?kull2014 | Kull, Flach | 2014 | Reliability maps: a tool to enhance probability estimates and improve classification accuracy | ECML PKDD, LNCS 8725, 18-33 | doi:10.1007/978-3-662-44851-9_2
?kull2017a | Kull, Silva Filho, Flach | 2017 | Beta calibration: a well-founded and easily implemented improvement on logistic calibration for binary classifiers | AISTATS, PMLR 54, 623-631 |
kull2017b | Kull, Silva Filho, Flach | 2017 | Beyond sigmoids: how to obtain well-calibrated probabilities from binary classifiers with beta calibration | Electronic Journal of Statistics 11(2), 5052-5080 | doi:10.1214/17-EJS1338SI
?kumar2018 | Kumar, Sarawagi, Jain | 2018 | Trainable calibration measures for neural networks from kernel mean embeddings | ICML, PMLR 80, 2805-2814 |
kumar2019 | Kumar, Liang, Ma | 2019 | Verified uncertainty calibration | NeurIPS 32 | arXiv:1909.10155
?kuppers2020 | Küppers, Kronenberger, Shantia, Haselhoff | 2020 | Multivariate confidence calibration for object detection | CVPR Workshops, 1322-1330 | arXiv:2004.13546
kuzucu2024 | Kuzucu, Oksuz, Sadeghi, Dokania | 2024 | On calibration of object detectors: pitfalls, evaluation and baselines | ECCV | arXiv:2405.20459
lane2025 | Lane | 2025 | A comprehensive review of classifier probability calibration metrics | preprint | arXiv:2504.18278
lee2023 | Lee, Huang, Hassani, Dobriban | 2023 | T-Cal: an optimal test for the calibration of predictive models | Journal of Machine Learning Research 24(335), 1-72 | arXiv:2203.01850
?liang2024 | Liang, Dong, Zheng et al. | 2024 | Calibrating deep neural network using Euclidean distance | preprint | arXiv:2410.18321
?lin2017 | Lin, Goyal, Girshick, He, Dollár | 2017 | Focal loss for dense object detection | ICCV, 2980-2988 | arXiv:1708.02002
?matsubara2023 | Matsubara, Tax, Mudd, Guy | 2023 | TCE: a test-based approach to measuring calibration error | UAI, PMLR 216, 1390-1400 | arXiv:2306.14343
mukhoti2020 | Mukhoti, Kulharia, Sanyal, Golodetz, Torr, Dokania | 2020 | Calibrating deep neural networks using focal loss | NeurIPS 33 | arXiv:2002.09437
naeini2015 | Naeini, Cooper, Hauskrecht | 2015 | Obtaining well calibrated probabilities using Bayesian binning | AAAI 29, 2901-2907 | doi:10.1609/aaai.v29i1.9602
nattino2020 | Nattino, Pennell, Lemeshow | 2020 | Assessing the goodness of fit of logistic regression models in large samples: a modification of the Hosmer-Lemeshow test | Biometrics 76(2), 549-560 | doi:10.1111/biom.13249
?neumann2018 | Neumann, Zisserman, Vedaldi | 2018 | Relaxed softmax: efficient confidence auto-calibration for safe pedestrian detection | NeurIPS Workshop on Machine Learning for Intelligent Transportation Systems |
nixon2019 | Nixon, Dusenberry, Zhang, Jerfel, Tran | 2019 | Measuring calibration in deep learning | CVPR Workshops | arXiv:1904.01685
obadinma2021 | Obadinma, Guo, Zhu | 2021 | Class-wise calibration: a case study on COVID-19 hate speech | Canadian Conference on Artificial Intelligence | doi:10.21428/594757db.da1a3d44
oksuz2023 | Oksuz, Joy, Dokania | 2023 | Towards building self-aware object detectors via reliable uncertainty quantification and calibration | CVPR | arXiv:2307.00934
pan2020 | Pan, Ao, Tang, Lu, Liu et al. | 2020 | Field-aware calibration: a simple and empirically strong method for reliable probabilistic predictions | WWW, 729-739 | arXiv:1905.10713
park2026 | Park, Sobolewski, Azizan | 2026 | Uncertainty quantification in detection transformers: object-level calibration and image-level reliability | IEEE Transactions on Pattern Analysis and Machine Intelligence | arXiv:2412.01782
?perez2023 | Perez-Lebel, Le Morvan, Varoquaux | 2023 | Beyond calibration: estimating the grouping loss of modern neural networks | ICLR | arXiv:2210.16315
?phan2025 | Phan et al. | 2025 | Humanity's Last Exam | preprint | arXiv:2501.14249
pigeon1999 | Pigeon, Heyse | 1999 | An improved goodness of fit statistic for probability prediction models | Biometrical Journal 41(1), 71-82 | doi:10.1002/(SICI)1521-4036(199903)41:1<71::AID-BIMJ71>3.0.CO;2-O
popordanoska2022 | Popordanoska, Sayer, Blaschko | 2022 | A consistent and differentiable Lp canonical calibration error estimator | NeurIPS 35 | arXiv:2210.07810
popordanoska2024 | Popordanoska, Tiulpin, Blaschko | 2024 | Beyond classification: definition and density-based estimation of calibration in object detection | WACV | arXiv:2312.06645
rahimi2020 | Rahimi, Shaban, Cheng, Hartley, Boots | 2020 | Intra order-preserving functions for calibration of multi-class neural networks | NeurIPS 33, 13456-13467 | arXiv:2003.06820
roelofs2022 | Roelofs, Cain, Shlens, Mozer | 2022 | Mitigating bias in calibration error estimation | AISTATS, PMLR 151, 4036-4054 | arXiv:2012.08668
?romano2020 | Romano, Sesia, Candès | 2020 | Classification with valid and adaptive coverage | NeurIPS 33 | arXiv:2006.02544
roulston2002 | Roulston, Smith | 2002 | Evaluating probabilistic forecasts using information theory | Monthly Weather Review 130(6), 1653-1660 | doi:10.1175/1520-0493(2002)130<1653:EPFUIT>2.0.CO;2
selten1998 | Selten | 1998 | Axiomatic characterization of the quadratic scoring rule | Experimental Economics 1, 43-61 | doi:10.1023/A:1009957816843
?shen2005 | Shen | 2005 | Loss functions for binary classification and class probability estimation | PhD thesis, University of Pennsylvania |
spiegelhalter1986 | Spiegelhalter | 1986 | Probabilistic prediction in patient management and clinical trials | Statistics in Medicine 5(5), 421-433 | doi:10.1002/sim.4780050506
?steyerberg2019 | Steyerberg | 2019 | Clinical prediction models: a practical approach to development, validation, and updating | 2nd edition, Springer | doi:10.1007/978-3-030-16399-0
sumler2025 | Sumler, Devlin, Maskell, Lane | 2025 | An entropic metric for measuring calibration of machine learning models | preprint | arXiv:2502.14545
tao2023 | Tao, Dong, Xu | 2023 | Dual focal loss for calibration | ICML, PMLR 202 | arXiv:2305.13665
tao2024a | Tao, Zhu, Guo, Dong, Xu | 2024 | A benchmark study on calibration | ICLR | arXiv:2308.11838
tao2024b | Tao, Guo, Dong, Xu | 2024 | Consistency calibration: improving uncertainty calibration via consistency among perturbed neighbors | preprint | arXiv:2410.12295
?traub2024 | Traub, Bungert, Lüth et al. | 2024 | Overcoming common flaws in the evaluation of selective classification systems | NeurIPS 37 | arXiv:2407.01032
tygert2022 | Tygert | 2022 | Calibration of P-values for calibration and for deviation of a subpopulation from the full population | preprint | arXiv:2202.00100
vaicenavicius2019 | Vaicenavicius, Widmann, Andersson, Lindsten, Roll, Schön | 2019 | Evaluating model calibration in classification | AISTATS, PMLR 89, 3459-3467 | arXiv:1902.06977
vanhoorde2014 | Van Hoorde, Vergouwe, Timmerman, Van Huffel, Steyerberg, Van Calster | 2014 | Assessing calibration of multinomial risk prediction models | Statistics in Medicine 33(15), 2585-2596 | doi:10.1002/sim.6114
vanhoorde2015 | Van Hoorde, Van Huffel, Timmerman, Bourne, Van Calster | 2015 | A spline-based tool to assess and visualize the calibration of multiclass risk predictions | Journal of Biomedical Informatics 54, 283-293 | doi:10.1016/j.jbi.2014.12.016
?verhaeghe2023 | Verhaeghe, De Corte, Sauer et al. | 2023 | Generalizable calibrated machine learning models for real-time atrial fibrillation risk prediction in ICU patients | International Journal of Medical Informatics 175, 105086 | doi:10.1016/j.ijmedinf.2023.105086
vickers2006 | Vickers, Elkin | 2006 | Decision curve analysis: a novel method for evaluating prediction models | Medical Decision Making 26(6), 565-574 | doi:10.1177/0272989X06295361
vickers2019 | Vickers, Van Calster, Steyerberg | 2019 | A simple, step-by-step guide to interpreting decision curve analysis | Diagnostic and Prognostic Research 3, 18 | doi:10.1186/s41512-019-0064-7
?wallace2012 | Wallace, Dahabreh | 2012 | Class probability estimates are unreliable for imbalanced data (and how to fix them) | ICDM, 695-704 | doi:10.1109/ICDM.2012.115
wang2023 | Wang, Golebiowski | 2023 | Towards unbiased calibration using meta-regularization | preprint | arXiv:2303.15057
widmann2019 | Widmann, Lindsten, Zachariah | 2019 | Calibration tests in multi-class classification: a unifying framework | NeurIPS 32 | arXiv:1910.11385
willmott2005 | Willmott, Matsuura | 2005 | Advantages of the mean absolute error (MAE) over the root mean square error (RMSE) in assessing average model performance | Climate Research 30(1), 79-82 | doi:10.3354/cr030079
wu2023 | Wu, Lei, Xu, Zhou | 2023 | Towards reliable rare category analysis on graphs via individual calibration | KDD | doi:10.1145/3580305.3599525
xiong2023 | Xiong, Deng, Koh, Wu, Li, Xu, Hooi | 2023 | Proximity-informed calibration for deep neural networks | NeurIPS 36 | arXiv:2306.04590
?yang2018 | Yang, Liu, Rao, Neville | 2018 | Goodness-of-fit testing for discrete distributions via Stein discrepancy | ICML, PMLR 80, 5561-5570 |
?yang2023 | Yang, Zhan, Gan | 2023 | Beyond probability partitions: calibrating neural networks with semantic aware grouping | NeurIPS 36 | arXiv:2306.04985
zhang2020 | Zhang, Kailkhura, Han | 2020 | Mix-n-Match: ensemble and compositional methods for uncertainty calibration in deep learning | ICML, PMLR 119 | arXiv:2003.07329
"""  # noqa: E501  (a record is a line)


def _read(line: str) -> tuple[str, Work]:
    key, authors, year, title, venue, identifier = (part.strip() for part in line.split("|"))
    checked = not key.startswith("?")
    return key.removeprefix("?"), Work(authors, int(year), title, venue, identifier, checked)


#: Every work by its key: first author and year.
LITERATURE: dict[str, Work] = dict(_read(line) for line in _TABLE.strip().splitlines())
