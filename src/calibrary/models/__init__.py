"""Rooms for whole models: leaving rows out, and binary classifiers combined into one of several classes."""
