"""Lists the versioned files that can affect scores, for the manifest of a run."""

from __future__ import annotations

from memarena import judging

SCORING_FILES = (judging.data_files,)
