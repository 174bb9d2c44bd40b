"""The versioned files that decide a score, gathered for the manifest of a run."""

from __future__ import annotations

from memarena import judging

SCORING_FILES = (judging.data_files,)
