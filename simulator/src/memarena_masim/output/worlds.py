"""Names the folders of several worlds of one seed, and finds those that are already complete."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from memarena_dataset.model import Family
from pydantic import JsonValue

from memarena_masim.config import WorldConfig
from memarena_masim.errors import MasimError
from memarena_masim.json_files import dump, json_value
from memarena_masim.output.parts import PARTS

REPORT = "pipeline_report.json"


def world_folder(out: Path, world: int, worlds: int) -> Path:
    """Return the folder of a world: ``out`` itself if there is only one."""
    return out / f"world_{world:02d}" if worlds > 1 else out


def counts_of_complete(config: WorldConfig, engine: Mapping[str, JsonValue], folder: Path) -> dict[str, int] | None:
    """Return the questions per family of a world that an earlier call completed; None if it is not complete.

    MasimError if the folder holds a complete world of another configuration or engine.
    """
    if not (folder / REPORT).exists() or (folder / PARTS).exists():
        return None
    report = json_value(folder, REPORT)
    settings = {name: report.get("engine", {}).get(name) for name in engine}
    if report.get("configuration") != config.model_dump(mode="json") or settings != json.loads(dump(dict(engine))):
        raise MasimError(f"--out {folder}: holds a data set of another configuration; choose another folder")
    return {str(family): int(count) for family, count in report["instances"].items()}


def summary(counts: Mapping[str, int]) -> str:
    """Return the number of questions as text, with witness pairs (an extension of the nine families) separately."""
    witness = counts.get(Family.WITNESS.value, 0)
    return f"{sum(counts.values()) - witness:,} questions, and {witness:,} in witness pairs"


def shortage(config: WorldConfig, counts: Mapping[str, int]) -> str:
    """Return the families with fewer questions than configured, as "FAMILY actual of configured"; "" if none."""
    counted = ((family, counts[family.value], config.questions(family)) for family in Family)
    return ", ".join(f"{family.value} {count} of {wanted}" for family, count, wanted in counted if count < wanted)
