"""Trains and measures the linear models of the judge: ``python -m judge_training train|evaluate|ablate MODEL``.

For developers; nothing of it is installed with the harness. Labelled texts are in ``harness/judge_training/data``.
"""
