"""Scoring: pure, from the records of a log to frozen results. Each dimension has one module.

Pure: nothing here reads a file, forks or looks at a clock; :mod:`memarena.evaluation` is the way from a run's log to
its scores.
"""
