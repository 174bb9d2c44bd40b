"""Tests shell completion: values of flags and arguments that exist in this installation."""

from __future__ import annotations

from importlib import import_module

import pytest
import typer
from memarena.cli.main import app
from memarena.report.document import table_keys
from typer.testing import CliRunner


def completed(line: str, application: typer.Typer = app, program: str = "memarena") -> list[str]:
    """Return the completions that bash would offer for the last word of a command line, which may be empty."""
    words = f"{program} {line}"
    environment = {f"_{program.upper().replace('-', '_')}_COMPLETE": "complete_bash", "COMP_WORDS": words}
    environment["COMP_CWORD"] = str(words.count(" "))
    return CliRunner().invoke(application, [], env=environment, prog_name=program).output.split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("run --backend bm", ["bm25"]),
        ("run --backend bm25,mems", ["bm25,memsearch"]),
        ("run --reader s", ["sglang:"]),
        ("run --meter nvml,pro", ["nvml,procfs"]),
        ("run --protocol e", ["end_of_horizon"]),
        ("run --seeds s1,s", ["s1,s2", "s1,s3", "s1,s4"]),
        ("run --family d7", ["d7_qa"]),
        ("run main", ["main-grid"]),
        ("sweep main", ["main-grid"]),
        ("reproduce al", ["all"]),
        ("report RUN --format la", ["latex"]),
        ("report RUN --table main", ["main-grid"]),
        ("readers install vl", ["vllm"]),
        ("backends install mem0", ["mem0", "mem0_raw"]),
        ("latency run --reader ext", ["extractive"]),
    ],
)
def test_values_are_completed(line: str, words: list[str]) -> None:
    assert completed(line) == words


def test_completed_tables_are_those_of_reports() -> None:
    assert completed("report RUN --table ") == list(table_keys())


def test_presets_and_profiles_are_completed() -> None:
    assert completed("generate --preset y", import_module("memarena_masim.cli").app, "masim") == ["year"]
    assert "gb10" in completed("canary --profile g", import_module("memarena_spark.cli.main").app, "memarena-spark")
