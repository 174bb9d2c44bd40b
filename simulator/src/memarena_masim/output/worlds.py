"""Several worlds of one seed: one folder each, and which of them are already complete."""

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
    """Folder of a world: ``out`` itself if there is only one."""
    return out / f"world_{world:02d}" if worlds > 1 else out


def counts_of_complete(config: WorldConfig, engine: Mapping[str, JsonValue], folder: Path) -> dict[str, int] | None:
    """Questions per family of a world that an earlier call completed; None if it is not complete.

    MasimError if the folder holds a complete world of another configuration or engine.
    """
    if not (folder / REPORT).exists() or (folder / PARTS).exists():
        return None
    report = json_value(folder, REPORT)
    made = {name: report.get("engine", {}).get(name) for name in engine}
    if report.get("configuration") != config.model_dump(mode="json") or made != json.loads(dump(dict(engine))):
        raise MasimError(f"--out {folder}: holds a data set of another configuration; choose another folder")
    return {str(family): int(count) for family, count in report["instances"].items()}


def summary(counts: Mapping[str, int]) -> str:
    """How many questions there are, those of witness pairs apart, which stand next to the nine families."""
    witness = counts.get(Family.WITNESS.value, 0)
    return f"{sum(counts.values()) - witness:,} questions, and {witness:,} in witness pairs"


def shortage(config: WorldConfig, counts: Mapping[str, int]) -> str:
    """Families with fewer questions than are aimed at, found of wanted; empty if there is none."""
    counted = ((family, counts[family.value], config.questions(family)) for family in Family)
    return ", ".join(f"{family.value} {count} of {wanted}" for family, count, wanted in counted if count < wanted)
