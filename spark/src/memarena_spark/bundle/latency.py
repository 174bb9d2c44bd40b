"""The latency study in a bundle: made again from the log where it is a study of the bundle's own run alone."""

from __future__ import annotations

from pathlib import Path

from memarena.latency.errors import LatencyError
from memarena.latency.results import Study
from memarena.latency.studying import study_runs
from pydantic import ValidationError

from memarena_spark.bundle import layout

STUDY = f"{layout.LATENCY}study.json"


def study_fault(bundle: Path, run_id: str) -> str | None:
    """Why the study is not what the log gives; None if it is, if there is none, or if it rests on other runs too.

    A study with fits over other memories than the default ones does not follow either: it belongs beside a bundle.
    """
    path = bundle / STUDY
    if not path.is_file():
        return None
    try:
        told = Study.model_validate_json(path.read_bytes())
    except ValidationError as error:
        return f"is no latency study: {error.errors()[0]['msg']}"
    if [run.run_id for run in told.runs] != [run_id]:
        return None
    try:
        found = study_runs([bundle / layout.LOG_FOLDER])
    except LatencyError as error:
        return f"cannot be made again from {layout.LOG}: {error}"
    return None if _without_paths(told) == _without_paths(found) else f"is not what follows from {layout.LOG}"


def _without_paths(study: Study) -> Study:
    """Where the run lay when it was studied says nothing."""
    return study.model_copy(update={"runs": tuple(run.model_copy(update={"path": ""}) for run in study.runs)})
