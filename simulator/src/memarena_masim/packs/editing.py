"""Edits the files of a pack in place: lists of TOML files, sections of scenes, rows of tables."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from memarena_masim.pack_schema import line_of


def table(folder: Path, file: str) -> dict[str, Any]:
    """Read a TOML file of a pack that was checked."""
    return tomllib.loads((folder / file).read_text(encoding="utf-8"))


def put_list(folder: Path, file: str, loc: Sequence[str], values: Sequence[str]) -> None:
    """Replace the list at the keys ``loc`` by ``values``."""
    path = folder / file
    lines = path.read_text(encoding="utf-8").splitlines()
    line = line_of("\n".join(lines), loc)
    assert line is not None, f"{path}: {loc} is in a pack that was checked"
    start = line - 1
    end = start + 1
    # a list may have several lines: the key's line and as many more as TOML needs to parse it
    while not _whole("\n".join(lines[start:end])):
        end += 1
    value_lines = "".join(f"\n  {json.dumps(value, ensure_ascii=False)}," for value in values)
    lines[start:end] = f"{loc[-1]} = [{value_lines}\n]".split("\n")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _whole(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def keep_rows(folder: Path, file: str, keep: Callable[[str], bool], more: Sequence[str]) -> None:
    """Keep the lines of a table for which ``keep`` is true, and all comments; add ``more`` at the end."""
    path = folder / file
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#") or keep(line)]
    path.write_text("\n".join([*lines, *more]) + "\n", encoding="utf-8")


def put_scenes(folder: Path, file: str, scenes: Mapping[str, Mapping[str, Any]]) -> None:
    """Write a topic with these scenes."""
    topic = table(folder, file)["topic"]
    parts = ["[topic]", *(f"{key} = {_value(value)}" for key, value in topic.items())]
    for key, scene in scenes.items():
        parts += ["", f"[{key}]"]
        parts += [f"{name} = {_value(value)}" for name, value in scene.items() if name not in ("values", "beats")]
        parts += [
            "",
            f"[{key}.values]",
            *(f"{name} = {_value(value)}" for name, value in scene.get("values", {}).items()),
        ]
        for beat in scene["beats"]:
            parts += ["", f"[[{key}.beats]]", *(f"{name} = {_value(value)}" for name, value in beat.items())]
    (folder / file).write_text("\n".join(parts) + "\n", encoding="utf-8")


def _value(value: str | bool | Sequence[str]) -> str:
    if isinstance(value, str | bool):
        return json.dumps(value, ensure_ascii=False)
    return "[" + "".join(f"\n  {json.dumps(text, ensure_ascii=False)}," for text in value) + "\n]"
