"""Merges a configuration file and flags into the configuration of a run; flags override the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from memarena.cli.run_flags import RunFlags
from memarena.cli.setting_flags import FlagValues, fields_of
from memarena.configs import Configuration, read_file, read_named
from memarena.execution.errors import RunError
from memarena.execution.planning.config import SETTINGS, RunConfig
from memarena.execution.planning.flag_values import split_list
from memarena.execution.planning.model_config import HelperConfig, ReaderConfig
from memarena.execution.planning.parsing import parse_config
from memarena.log.records import NamedConfiguration

EDGE_CONTEXT_TOKENS = 512
EDGE_ANSWER_TOKENS = 64

HELPERS = tuple(each.name for each in SETTINGS if each.setting.models is HelperConfig)
_FILE_ENDINGS = (".toml", ".yaml", ".yml")


def run_settings(flags: RunFlags) -> tuple[RunConfig | None, NamedConfiguration | None]:
    """Return the configuration of a run and the file that it is based on; (None, None) to resume a run unchanged.

    Raises :class:`RunError` naming file and field, or flag.
    """
    configuration = None if flags.name is None else _chosen(flags.name)
    deciding_flags = flags.deciding()
    if configuration is None and flags.resume and not deciding_flags:
        return None, None
    overrides = fields_of(flags.settings)
    if flags.edge:
        overrides |= {"max_context_tokens": EDGE_CONTEXT_TOKENS, "max_answer_tokens": EDGE_ANSWER_TOKENS}
    values = with_models(_merged({} if configuration is None else configuration.run, overrides), flags.settings)
    for flag, name in (("--dataset", "dataset"), ("--backend", "backends"), ("--reader", "readers")):
        if not values.get(name):
            hint = (
                f"; with {deciding_flags[0]}, --resume needs all settings of the run again"
                if flags.resume and deciding_flags
                else ""
            )
            raise RunError(f"{flag}: missing{hint}")
    if configuration is None:
        return parse_config(values, None), None
    if "backend" not in flags.settings:  # other memories may need less; one that lacks a model says so itself
        _check_needs(configuration, values)
    where = configuration.where if not deciding_flags else f"{configuration.where} and flags"
    return parse_config(values, where), NamedConfiguration(name=configuration.name, sha256=configuration.sha256)


def _chosen(name: str) -> Configuration:
    path = Path(name)
    if path.suffix in _FILE_ENDINGS or "/" in name or path.is_file():
        return read_file(path)
    return read_named(name)


def _check_needs(chosen: Configuration, values: Mapping[str, object]) -> None:
    """Raise RunError if a model that the configuration needs is not set."""
    for role in chosen.needs:
        if not values.get(role):
            embedded = "embedded, or " if role == "embedder" else ""
            raise RunError(f"{chosen.name}: needs --{role}: {embedded}the URL of an API ({chosen.paper})")


def _merged(under: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """Merge two mappings recursively; values of ``over`` override those of ``under``."""
    return {**under, **{name: _entry(under.get(name), value) for name, value in over.items()}}


def _entry(low: object, high: object) -> object:
    if not (isinstance(low, Mapping) and isinstance(high, Mapping)):
        return high
    return {**low, **{key: _entry(low.get(key), value) for key, value in high.items()}}


def with_models(values: dict[str, object], flags: FlagValues) -> dict[str, object]:
    """Return the values with readers and helpers from flags.

    A flag such as ``--reader`` replaces those of the configuration; flags that only qualify them, such as
    ``--reader-window``, change each of the configuration's.
    """
    qualities = fields_of(flags, "readers")
    if "reader" in flags:
        values["readers"] = [{"spec": spec, **qualities} for spec in split_list(str(flags["reader"]))]
    elif qualities and isinstance(readers := values.get("readers"), list | tuple):
        values["readers"] = [{**_plain(reader), **qualities} for reader in readers]
    for role in HELPERS:
        role_fields = fields_of(flags, role)
        if role in flags:
            values[role] = {"spec": flags[role], **role_fields}
        elif role_fields and values.get(role) is not None:
            values[role] = {**_plain(values[role]), **role_fields}
        elif role_fields:
            raise RunError(
                f"--{role}-model {role_fields['model']}: names a model behind --{role} URL, which is missing"
            )
    return values


def _plain(value: object) -> dict[str, object]:
    if isinstance(value, ReaderConfig | HelperConfig):
        return value.model_dump()
    return dict(value) if isinstance(value, Mapping) else {"spec": value}
