"""Computes scores from the records of a log, as frozen records.

Scoring is pure: no module here reads a file, forks or looks at a clock. :mod:`memarena.evaluation` reads a run's log
and scores it.
"""
