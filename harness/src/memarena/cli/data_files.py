"""The versioned files that decide a score, gathered for the manifest of a run."""

from __future__ import annotations

from memarena import judge, scoring

SCORING_FILES = (judge.data_files, scoring.data_files)
