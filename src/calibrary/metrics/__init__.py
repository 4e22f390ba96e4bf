"""The metrics: one package per family of the review, each metric written like its formula, and shared machinery.

A metric's module is imported when the metric is first computed; what is known about it is in the cards.
"""
