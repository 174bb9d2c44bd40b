"""Several worlds of a seed: a folder each, and which of them are complete already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from masim.config import WorldConfig
from masim.errors import MasimError
from masim.output.parts import PARTS
from masim.output.rows import dump

REPORT = "pipeline_report.json"


def world_folder(out: Path, world: int, worlds: int) -> Path:
    """Folder of a world: ``out`` itself if there is only one."""
    return out / f"world_{world:02d}" if worlds > 1 else out


def questions_of_complete(config: WorldConfig, engine: Mapping[str, JsonValue], folder: Path) -> int | None:
    """Questions of a world that an earlier call completed; None if it is not complete.

    MasimError if the folder holds a complete world of another configuration or engine.
    """
    if not (folder / REPORT).exists() or (folder / PARTS).exists():
        return None
    report = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    made = {name: report.get("engine", {}).get(name) for name in engine}
    if report.get("configuration") != config.model_dump(mode="json") or made != json.loads(dump(dict(engine))):
        raise MasimError(f"--out {folder}: holds a data set of another configuration; choose another folder")
    return int(report["counts"]["instances"])
