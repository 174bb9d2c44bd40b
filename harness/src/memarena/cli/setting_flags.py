"""Flags of settings: made for a command from the declarations, and turned back into fields of a run's configuration."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from memarena.cli.completion import of_setting
from memarena.execution.planning.config import SETTINGS
from memarena.execution.planning.settings import Command, Panel, SettingField

FlagValues = Mapping[str, object]
"""What a user typed, by flag as a name in Python (``reader_window``); a flag that was not used is not in it."""


@dataclass(frozen=True)
class SettingsOf:
    """Marks the field of a command's record that holds :data:`FlagValues`: which flags there are, and what differs."""

    command: Command
    defaults: Mapping[str, object] = field(default_factory=dict)
    """Values of flags that are not typed, by parameter."""
    shown: Mapping[str, object] = field(default_factory=dict)
    """Defaults in help texts, by parameter, where the command uses another than the field's."""
    help: Mapping[str, str] = field(default_factory=dict)
    """Help texts, by parameter, where the flag means something else in this command."""
    panels: bool = False
    """Group the flags in ``--help``."""

    def parameters(self) -> list[inspect.Parameter]:
        """A parameter for each flag, as typer reads them; in the order of the panels where there are any."""
        flags = [each for each in SETTINGS if self.command in each.commands]
        if self.panels:
            order = list(Panel)
            flags.sort(key=lambda each: order.index(each.setting.panel))
        return [self._parameter(each) for each in flags]

    def _parameter(self, flag: SettingField) -> inspect.Parameter:
        name, text = flag.parameter, self.help.get(flag.parameter) or flag.help(self.shown.get(flag.parameter))
        panel = flag.setting.panel.value if self.panels else None
        complete = of_setting(flag.parameter, flag.field.annotation)
        option = typer.Option(*_spellings(flag), help=text, rich_help_panel=panel, autocompletion=complete)
        kind: Any = Annotated[flag.kind | None, option]
        default = self.defaults.get(name)
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _spellings(flag: SettingField) -> tuple[str, ...]:
    if flag.kind is bool:
        return (f"--{flag.flag}/--no-{flag.flag}",) if flag.default else (f"--{flag.flag}",)
    return tuple(f"--{name}" for name in (flag.setting.long_flag, flag.flag) if name)


def typed(values: Mapping[str, Any]) -> FlagValues:
    """The values of flags that were used: the parser has None or an empty list for the others."""
    return {name: value for name, value in values.items() if value is not None and value != []}


def fields_of(flags: FlagValues, role: str = "") -> dict[str, object]:
    """Fields of the configuration that flags set, or of its models in a role; flags that name models are left out.

    Raises RunError for text that does not have the flag's form.
    """
    values: dict[str, object] = {}
    for each in SETTINGS:
        if each.commands and each.role == role and each.setting.models is None and each.parameter in flags:
            values |= each.to_fields(flags[each.parameter])
    return values
