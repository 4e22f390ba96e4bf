"""Time of the binned metrics on a million predictions, as a ratio to sorting them.

    python benchmarks/bins.py [number of predictions] [words that select rows]

What the columns mean is said in ``sorts.py``.
"""

from __future__ import annotations

from sorts import Row, main, metric

ROWS: list[Row] = [
    ("ECE, 15 equal-width bins", 0.25, metric("ece"), "binary"),
    ("ECE, left-closed", 1.0, metric("ece", closed="left"), "binary"),
    ("ECE, two decimals", 1.0, metric("ece"), "decimal"),
    ("ECE, l2", 1.0, metric("ece", norm=2), "binary"),
    ("ECE, weighted", 1.0, metric("ece"), "weighted"),
    ("MCE", 1.0, metric("mce"), "binary"),
    ("imbalanced ICE", 1.0, metric("ice"), "binary"),
    ("RBECE", 1.0, metric("rbece"), "binary"),
    ("ECE-LB", 1.0, metric("ece_lb"), "binary"),
    ("averaged ECE, ten widths", 1.0, metric("ece_averaged"), "binary"),
    ("ESCE", 1.0, metric("esce"), "binary"),
    ("ECE, own edges", 1.0, metric("ece", edges=[0, 0.1, 0.5, 0.9, 1]), "binary"),
    ("ACE (equal mass)", 3.0, metric("ace"), "binary"),
    ("ACE, weighted", 3.0, metric("ace"), "weighted"),
    ("TACE", 3.0, metric("tace"), "binary"),
    ("ECE, equal area", 3.0, metric("ece", binning="area"), "binary"),
    ("ECE, unique values", 3.0, metric("ece", binning="unique"), "binary"),
    ("ECE-SWEEP", 3.0, metric("ece_sweep"), "binary"),
    ("ECE-SWEEP, equal width", 3.0, metric("ece_sweep", base="width"), "binary"),
    ("ECE@k, k = 1000", 3.0, metric("ece_at_k", k=1000), "binary"),
    ("MVMS", 3.0, metric("mvms"), "binary"),
    ("SICE, exact", 8.0, metric("sice"), "binary"),
    ("RICE, exact", 3.0, metric("rice"), "binary"),
    ("ECE-FOTT, 10 folds x 40", None, metric("ece_fott"), "binary"),
    ("SBECE, 15 soft bins", None, metric("sbece"), "binary"),
    ("DECE, 15 soft bins", None, metric("dece"), "binary"),
    ("CE2-DB", 3.0, metric("ce2_db"), "binary"),
    ("ECE-DB", 3.0, metric("ece_db"), "binary"),
    ("Hosmer-Lemeshow", 3.0, metric("hl"), "binary"),
    ("DPE (T-Cal's estimate)", 1.0, metric("tcal"), "binary"),
    ("TCE", 20.0, metric("tce"), "binary"),
    ("TCE, equal width", 20.0, metric("tce", binning="width"), "binary"),
    ("CalBin", 3.0, metric("calbin"), "binary"),
    ("CalBin, two decimals", 3.0, metric("calbin"), "decimal"),
    ("ECE-KNN", 3.0, metric("ece_knn"), "binary"),
    ("ECE-KNN, weighted", None, metric("ece_knn"), "weighted"),
    ("HCS", 1.0, metric("hcs"), "binary"),
    ("WCR, K = 10", None, metric("wcr"), "ten classes"),
    ("ECE, class-wise, K = 10", 10.0, metric("ece", lens="class-wise"), "ten classes"),
    ("ECE, top-label, K = 10", 10.0, metric("ece"), "ten classes"),
]

if __name__ == "__main__":
    main(ROWS)
