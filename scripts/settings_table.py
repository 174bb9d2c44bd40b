"""Writes docs/settings.md from the declarations of the settings: python -m scripts.settings_table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memarena.execution.planning.config import SETTINGS, RunConfig
from memarena.execution.planning.model_config import HelperConfig, ReaderConfig
from memarena.execution.planning.settings import Panel, SettingField, shown_value

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"
_HEAD = """# Settings of a run

Every setting: its flag of `memarena run`, its key in a configuration file (also the keyword of `memarena.run` and the
key in a run's manifest), and where else it may be set. `python -m scripts.settings_table` writes this page from the
declarations in `memarena.execution.planning.config`; [running](running.md#settings) explains more.

- **in files**: `readers[]` is each entry of the list `readers`.
- **also**: *study*, *growth* and *check* are flags of `memarena latency run`, `memarena latency growth` and
  `memarena reader check`. *resume*: may differ when a run is resumed. *not in a sweep*: not below `[run]` in the file
  of a sweep, which sets it elsewhere. *not in a study*: not in the file of `memarena latency run`.
"""
_COMMANDS = {"latency run": "study", "latency growth": "growth", "reader check": "check"}
_TYPES = {"integer": "whole number", "number": "number", "boolean": "true or false", "string": "text", "array": "list"}


def page() -> str:
    """Return the text of the page."""
    parts = [_HEAD]
    for panel in Panel:
        rows = [_row(entry) for entry in SETTINGS if entry.setting.panel is panel and not _repeats(entry)]
        parts.append(f"\n## {panel.value}\n\n| flag | in files | meaning | expected | default | also |\n")
        parts.append("| --- | --- | --- | --- | --- | --- |\n" + "".join(rows))
    return "".join(parts)


def _repeats(each: SettingField) -> bool:
    """Whether a setting is left out: all helping models have the same settings, so only the embedder's are shown."""
    return each.role in ("extractor", "reranker") and not each.commands


def _row(each: SettingField) -> str:
    run = "run" in each.commands
    flag = f"`--{'no-' if run and each.default is True else ''}{each.flag}`" if run else ""
    cells = (flag, f"`{each.path}`", each.help(), _expected(each), _default(each), ", ".join(_also(each)))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _default(each: SettingField) -> str:
    if each.field.is_required():
        return "required"
    text = shown_value(each.default)
    return each.setting.unset or (f"`{text}`" if text else "none")


def _also(each: SettingField) -> Iterator[str]:
    yield from (word for command, word in _COMMANDS.items() if command in each.commands)
    if not each.role:
        if not each.setting.fixed:
            yield "resume"
        if not each.setting.in_sweep:
            yield "not in a sweep"
        if each.setting.set_by_study:
            yield "not in a study"


def _expected(each: SettingField) -> str:
    """Return type, bounds and unit of a setting: ``whole number, 16 to 4294967295, tokens``."""
    model = RunConfig if not each.role else ReaderConfig if each.role == "readers" else HelperConfig
    whole = model.model_json_schema()
    schema: Mapping[str, Any] = whole["properties"][each.name]
    schema = next((kind for kind in schema.get("anyOf", ()) if kind.get("type") != "null"), schema)
    schema = whole["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if "enum" in schema:
        return "one of " + ", ".join(f"`{value}`" for value in schema["enum"])
    words = [_TYPES.get(str(schema.get("type")), "map")]
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        words.append(f"more than {schema['exclusiveMinimum']:g}")
    if low is not None:
        words.append(f"{low} or more" if high is None else f"{low} to {high}")
    elif high is not None:
        words.append(f"at most {high:g}")
    if "exclusiveMaximum" in schema:
        words.append(f"less than {schema['exclusiveMaximum']:g}")
    if "pattern" in schema:
        words.append(f"of the form `{schema['pattern']}`")
    return ", ".join([*words, *filter(None, [each.setting.unit])])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
