"""Merges a configuration and flags into one frozen record of what a run does. Flags win."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from memarena.cli.run_flags import RunFlags
from memarena.configs import Configuration, read_file, read_named
from memarena.execution.errors import RunError
from memarena.execution.planning.config import HelperConfig, ReaderConfig, RunConfig, parse_config
from memarena.log.records import NamedConfiguration

EDGE_CONTEXT_TOKENS = 512
EDGE_ANSWER_TOKENS = 64

_HELPERS = ("embedder", "extractor", "reranker")
_FILE_ENDINGS = (".toml", ".yaml", ".yml")
_FIELD_OF = {"ego": "egos", "family": "families"}
"""Flags that can be given once for each entry of a field."""
_OF_THEIR_OWN = frozenset({"cache", "question_ids", "prompt_style", "seeds", *_HELPERS})
"""Flags that are named like a field but have a form of their own."""
_MERGED = ("options", "settings", "prompt_styles", "deadlines_s", "budgets")
"""Fields that hold entries, of which a flag overrides one and leaves the others."""


def settled(flags: RunFlags) -> tuple[RunConfig | None, NamedConfiguration | None]:
    """What to do, and the file that it came from; nothing at all where a run is resumed as its log says.

    Raises :class:`RunError` naming file and field, or flag.
    """
    chosen = None if flags.name is None else _chosen(flags.name)
    given = flags.deciding()
    if chosen is None and flags.resume and not given:
        return None, None
    values = _merged({} if chosen is None else chosen.run, _values(flags))
    _apply_models(values, flags)
    for flag, name in (("--dataset", "dataset"), ("--backend", "backends"), ("--reader", "readers")):
        if not values.get(name):
            hint = (
                f"; beside {given[0]}, --resume needs all settings of the run again" if flags.resume and given else ""
            )
            raise RunError(f"{flag}: missing{hint}")
    if chosen is None:
        return parse_config(values, None), None
    _check_needs(chosen, values)
    where = chosen.where if not given else f"{chosen.where} and flags"
    return parse_config(values, where), NamedConfiguration(name=chosen.name, sha256=chosen.sha256)


def read_ids(path: Path) -> list[str]:
    """Instance ids of a file, one per line; empty lines and lines that begin with # are passed over."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"--question-ids {path}: cannot be read: {error}") from error
    ids = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not ids:
        raise RunError(f"--question-ids {path}: names no instance; expected one id per line")
    return ids


def _chosen(name: str) -> Configuration:
    path = Path(name)
    if path.suffix in _FILE_ENDINGS or "/" in name or path.is_file():
        return read_file(path)
    return read_named(name)


def _check_needs(chosen: Configuration, values: Mapping[str, object]) -> None:
    for role in chosen.needs:
        if not values.get(role):
            embedded = "embedded, or " if role == "embedder" else ""
            raise RunError(f"memarena run {chosen.name}: needs --{role}: {embedded}the URL of an API ({chosen.paper})")


# ------------------------------------------------------------------ flags as values of the configuration


def _values(flags: RunFlags) -> dict[str, object]:
    """Fields of a configuration that flags give."""
    values: dict[str, object] = {}
    for flag in (field.name for field in fields(flags)):
        field_name, given = _FIELD_OF.get(flag, flag), getattr(flags, flag)
        if field_name in RunConfig.model_fields and flag not in _OF_THEIR_OWN and given not in (None, []):
            values[field_name] = given
    if flags.edge:
        values |= {"max_context_tokens": EDGE_CONTEXT_TOKENS, "max_answer_tokens": EDGE_ANSWER_TOKENS}
    if flags.thinking is not None and flags.thinking.isdecimal():
        values |= {"thinking": "on", "reasoning_tokens": int(flags.thinking)}
    if flags.cache is not None:
        values["cache"] = flags.cache.absolute()
    if flags.question_ids is not None:
        values["question_ids"] = read_ids(flags.question_ids)
    for field, text in (("backends", flags.backend), ("seeds", flags.seeds), ("meters", flags.meter)):
        if text is not None:
            values[field] = _list(text)
    if flags.prompt_style:
        values |= _prompt_styles(flags.prompt_style)
    for field, entries in (
        ("options", _dotted("option", flags.option, "BACKEND.KEY=VALUE")),
        ("settings", _dotted("setting", flags.setting, "BACKEND.VARIABLE=VALUE")),
        ("budgets", _budgets(flags.budget)),
        ("deadlines_s", _deadlines(flags.deadline)),
    ):
        if entries:
            values[field] = entries
    return values


def _merged(under: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    merged = {**under, **over}
    for field in _MERGED:
        low, high = under.get(field), over.get(field)
        if isinstance(low, Mapping) and isinstance(high, Mapping):
            merged[field] = {**low, **{key: _entry(low.get(key), value) for key, value in high.items()}}
    return merged


def _entry(low: object, high: object) -> object:
    return {**low, **high} if isinstance(low, Mapping) and isinstance(high, Mapping) else high


def _apply_models(values: dict[str, object], flags: RunFlags) -> None:
    """Readers and helpers: a flag names new ones; flags that only qualify them go to those of the configuration."""
    qualities = reader_qualities(flags)
    if flags.reader is not None:
        values["readers"] = [{"spec": spec, **qualities} for spec in _list(flags.reader)]
    elif qualities and isinstance(readers := values.get("readers"), list | tuple):
        values["readers"] = [{**_plain(reader), **qualities} for reader in readers]
    for role in _HELPERS:
        spec, model = getattr(flags, role), getattr(flags, f"{role}_model")
        if spec is not None:
            values[role] = {"spec": spec, "model": model}
        elif model is not None and values.get(role) is not None:
            values[role] = {**_plain(values[role]), "model": model}
        elif model is not None:
            raise RunError(f"--{role}-model {model}: names a model behind --{role} URL, which is missing")


def _params(pairs: list[str] | None) -> dict[str, object] | None:
    params: dict[str, object] = {}
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        try:
            params[key] = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            equals = ""
        if not (equals and key):
            raise RunError(f"--reader-param {pair}: expected KEY=JSON, such as top_k=1 or stop='[\"END\"]'")
    return params or None


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def reader_qualities(flags: RunFlags) -> dict[str, object]:
    """Fields of a reader's configuration that flags give."""
    return {
        name: value
        for name, value in (
            ("model", flags.model),
            ("window_tokens", flags.reader_window),
            ("no_system_role", flags.no_system_role),
            ("params", _params(flags.reader_param)),
            ("drop", flags.reader_drop or None),
            ("concurrency", flags.reader_concurrency),
            ("requests_per_minute", flags.reader_requests_per_minute),
            ("patience_s", flags.reader_patience),
        )
        if value is not None
    }


def _plain(value: object) -> dict[str, object]:
    if isinstance(value, ReaderConfig | HelperConfig):
        return value.model_dump()
    return dict(value) if isinstance(value, Mapping) else {"spec": value}


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _prompt_styles(given: list[str]) -> dict[str, object]:
    styles: dict[str, str] = {}
    values: dict[str, object] = {}
    for each in given:
        backend, equals, style = each.rpartition("=")
        if equals:
            styles[backend] = style
        else:
            values["prompt_style"] = each
    return {**values, "prompt_styles": styles} if styles else values


def _dotted(flag: str, pairs: list[str] | None, form: str) -> dict[str, dict[str, str]]:
    entries: dict[str, dict[str, str]] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        backend, dot, key = name.rpartition(".")
        if not (equals and dot and backend and key):
            raise RunError(f"--{flag} {pair}: expected {form}")
        entries.setdefault(backend, {})[key] = value
    return entries


def _deadlines(pairs: list[str] | None) -> dict[str, str]:
    deadlines = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals:
            raise RunError(f"--deadline {pair}: expected CALL=SECONDS")
        deadlines[name] = value
    return deadlines


def _budgets(pairs: list[str] | None) -> dict[str, dict[str, str]]:
    budgets: dict[str, dict[str, str]] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        call, dot, what = name.partition(".")
        if not (equals and dot and what in ("calls", "tokens")):
            raise RunError(f"--budget {pair}: expected CALL.calls=N or CALL.tokens=N")
        budgets.setdefault(call, {})[what] = value
    return budgets
