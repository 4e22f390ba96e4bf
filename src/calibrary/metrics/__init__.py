"""The metrics: one package per family of the review, each metric written like its formula, and shared machinery."""

from __future__ import annotations

from importlib import import_module as _import_module

from calibrary.public import modules_of_metrics as _modules_of_metrics

for _module in _modules_of_metrics():  # a metric is entered in the catalogue when its module is imported
    if _module.startswith(__name__):
        _import_module(_module)
