"""Every loss with options that change its formula, and small data to try them on."""

from __future__ import annotations

import numpy as np

N = 41
GROUPS = np.arange(N) % 4
SOFT = {1: np.linspace(0.1, 0.9, N), 2: np.random.default_rng(3).dirichlet(np.ones(3), N)}
#: Every loss with its defaults and with options that change its formula.
CASES = [
    ("bs", {}),
    ("bs", {"scale": "sum"}),
    ("bs", {"scale": "half"}),
    ("rbs", {}),
    ("pls", {}),
    ("pls", {"form": "unit"}),
    ("rps", {}),
    ("rps", {"normalize": False}),
    ("sarps", {}),
    ("sarps", {"definition": "review"}),
    ("nll", {}),
    ("nll", {"eps": 0.2, "base": 2, "scale": "1/K"}),
    ("fl", {}),
    ("fl", {"gamma": 0.5}),
    ("fl", {"gamma": 0}),
    ("fl", {"gamma": "flsd-53", "scale": "1/K"}),
    ("fl", {"gamma": 1.0 + np.arange(N) % 2}),
    ("fcl", {}),
    ("fcl", {"lam": 3.0, "gamma": 1.0}),
    ("dual_fl", {}),
    ("dual_fl", {"definition": "review", "gamma": 1.0}),
    ("ecd", {}),
    ("ecd", {"eps": 0.1}),
    ("pss", {}),
    ("pss", {"alpha": 3.0, "form": "loss"}),
    ("pss", {"alpha": 1, "form": "loss"}),
    ("ps", {}),
    ("ps", {"alpha": 3.0, "form": "unit"}),
    ("dss", {}),
    ("nses", {"eps": 0.05}),
    ("mae", {}),
    ("pwe", {}),
    ("pwe", {"norm": 3}),
    ("pwe", {"norm": np.inf}),
    ("l1eps", {}),
    ("hinge", {}),
    ("hinge", {"variant": "standard"}),
    ("hinge", {"variant": "raw"}),
    ("huber", {}),
    ("silf", {"eps": 0.3, "beta": 0.5}),
    ("asymmetric_ls", {}),
    ("general_ls", {}),
    ("gsb", {}),
    ("gsb", {"scale": "sum"}),
    ("mdca", {}),
    ("esce", {}),
    ("eo", {}),
    ("oe", {}),
    ("sf1", {}),
    ("spiegelhalter", {}),
    ("pws", {}),
    ("wcr", {}),
    ("cal", {}),
    ("pce", {"groups": GROUPS}),
    ("pce", {"groups": np.column_stack([GROUPS, np.arange(N) % 3]), "loss": "squared"}),
    ("sbece", {}),
    ("sbece", {"n_bins": 7, "tau": 0.05, "norm": 1}),
    ("sbece", {"norm": "max"}),
    ("sbece", {"label_binned": True, "decay_factor": 2.0, "aggregate": "mean"}),
    ("sbece", {"label_binned": True, "norm": "max"}),
    ("dece", {}),
    ("dece", {"norm": 2, "eps": 1e-3}),
    ("dece", {"accuracy": "soft", "lens": "top-label"}),
    ("dece", {"confidence": "logsumexp", "lens": "top-label"}),
    ("dece", {"accuracy": "soft", "tau_a": 5.0, "confidence": "logsumexp", "sharpness": 9.0, "lens": "top-label"}),
    ("rice", {}),
    ("rice", {"width": 0.37}),
    ("sice", {}),
    ("sice", {"k_max": 3}),
    ("ecce_mad", {}),
    ("ecce_r", {}),
    ("mmce", {}),
    ("mmce", {"squared": True, "kernel": "gaussian", "bandwidth": 0.2}),
    ("mmce", {"weighted": True}),
    ("mmce", {"bandwidth": 1e-3}),
    ("lkce", {}),
    ("msce", {}),
    ("sece", {"bandwidth": 0.05}),
    ("skde", {"bandwidth": 0.2}),
    ("skde", {"bandwidth": 0.1, "norm": 2, "kernel": "gaussian", "reflect": False}),
    ("smece", {}),
    ("smece", {"sigma": 0.1}),
    ("smece", {"sigma": 0.02}),
    ("lsece", {}),
    ("lsece", {"sigma": 0.5}),
    ("bkde", {"bandwidth": 0.05}),
    ("bkde", {"bandwidth": 0.001}),
    ("bkde", {"bandwidth": 0.05, "norm": 1}),
    ("bkde", {"bandwidth": 0.2, "debias": False}),
    ("dkde", {"bandwidth": 0.05}),
    ("dkde", {"bandwidth": 0.05, "norm": 2, "root": True}),
    ("skce_b", {"bandwidth": 0.3}),
    ("skce_b", {"bandwidth": 0.3, "metric": "euclidean"}),
    ("skce_uq", {"bandwidth": 0.3}),
    ("skce_uq", {"bandwidth": 0.3, "kernel": "gaussian"}),
    ("skce_ul", {"bandwidth": 0.3}),
    ("skce_ul", {"bandwidth": 0.3, "kernel": "gaussian"}),
    ("kccsd", {"bandwidth": 0.3}),
    ("kccsd", {"bandwidth": 0.3, "operator": "gibbs", "estimator": "b"}),
    ("kccsd", {"bandwidth": 0.3, "operator": "metropolis"}),
    ("kccsd", {"bandwidth": 0.3, "operator": "difference", "kernel": "laplace"}),
]


def named(value):
    return value if isinstance(value, str) else ",".join(f"{k}={v}" for k, v in value.items() if np.ndim(v) == 0)


def binary(n=N, seed=0):
    rng = np.random.default_rng(seed)
    c = rng.uniform(0.02, 0.98, n)
    return (rng.random(n) < 0.2 + 0.6 * c).astype(int), c


def multi(n=N, k=3, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    return rng.integers(0, k, n), p


def by_row(options):
    """Do the options hold one number for each row?"""
    return any(isinstance(v, np.ndarray) and len(v) == N for v in options.values())


def cut_short(options, n):
    return {k: v[:n] if isinstance(v, np.ndarray) and len(v) == N else v for k, v in options.items()}
