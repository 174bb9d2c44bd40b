"""Tests that flags, help, messages and the documentation's page follow from one declaration of each setting."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from memarena.cli.main import Commands
from memarena.cli.run_config import run_settings
from memarena.cli.run_flags import RunFlags
from memarena.execution.errors import RunError
from memarena.execution.planning.config import SETTINGS
from memarena.execution.planning.settings import Command, Panel, Setting, settings_of
from pydantic import BaseModel

from scripts.settings_table import PAGE, page

COMMANDS: tuple[Command, ...] = ("run", "latency run", "latency growth", "reader check")


def options(command: str) -> dict[str, Any]:
    """The options of a command as its parser has them, by name."""
    first, *rest = command.split()
    loaded = Commands.entries[first].load(first)
    for name in rest:
        loaded = loaded.commands[name]
    return {option.name: option for option in loaded.params if option.param_type_name == "option"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_a_flag_for_each_setting_that_names_it(command: Command) -> None:
    known = options(command)
    declared = [each for each in SETTINGS if command in each.commands]
    assert declared
    for each in declared:
        option = known[each.parameter]
        assert f"--{each.flag}" in option.opts
        assert option.multiple == (each.kind == list[str])
        assert option.help
        assert "{" not in option.help
    others = {each.parameter for each in SETTINGS} - {each.parameter for each in declared}
    assert not (others - {"ego"}) & known.keys()  # growth has its own: whose history


def test_the_help_of_a_run_groups_its_flags_in_the_order_of_the_panels() -> None:
    panels = dict.fromkeys(option.rich_help_panel for option in options("run").values())
    assert list(panels) == [None, *(panel.value for panel in Panel)]


def test_help_texts_show_the_default_that_holds_in_the_command() -> None:
    assert "default 0. " in options("run")["idle_s"].help
    assert "default 120. " in options("latency run")["idle_s"].help
    assert options("run")["limit"].help.endswith("default: all.")
    assert "ingest=600, search=30" in options("run")["deadline"].help


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"reader_concurrency": 0}, "--reader-concurrency: expected 1 or more, got '0'"),
        ({"thinking": "4294967296"}, "--thinking: expected at most 4294967295"),
        ({"prompt_style": ["bm25=prose"]}, "--prompt-style bm25: expected one of backend, text_sessions, json_context"),
        ({"deadline": ["search"]}, "--deadline search: expected CALL=SECONDS"),
        ({"budget": ["search.joules=3"]}, "--budget search.joules=3: expected CALL.calls=N or CALL.tokens=N"),
        ({"reader_param": ["top_k=NaN"]}, "--reader-param top_k=NaN: expected KEY=JSON"),
    ],
)
def test_a_value_at_fault_is_named_by_the_flag_that_sets_it(flags: dict[str, object], message: str) -> None:
    with pytest.raises(RunError) as caught:
        run_settings(RunFlags(settings={"dataset": "data", "backend": "bm25", "reader": "extractive", **flags}))
    assert str(caught.value).startswith(message)


def test_a_field_without_a_declaration_is_refused() -> None:
    class Incomplete(BaseModel):
        speed: Annotated[int, Setting(Panel.LOG, "Speed.")] = 1
        colour: str = "blue"

    with pytest.raises(TypeError, match=r"Incomplete\.colour: expected a Setting"):
        list(settings_of(Incomplete))


def test_the_page_of_settings_is_that_of_the_declarations() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it again: python -m scripts.settings_table"
