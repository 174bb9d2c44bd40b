"""Tests the file of tables: against published tables and configurations; readers, plans, bad input, figures."""

from __future__ import annotations

import dataclasses
import re
import threading
import time
import typing
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from memarena.configs import read_named
from memarena.paper.published import load_published
from memarena.paper.published_types import PublishedReader
from memarena.reproduction.document import reproduction_document
from memarena.reproduction.errors import ReproductionError
from memarena.reproduction.figures import Line, Measured, value_of
from memarena.reproduction.gathering import Gathered
from memarena.reproduction.published import published_table
from memarena.reproduction.reader_set import read_reader_set
from memarena.reproduction.running import Runner
from memarena.reproduction.score_figures import ScoredRow, pooled
from memarena.reproduction.steps import STUDY_GROUPS, Settings, Step, steps_of
from memarena.reproduction.study_figures import OF_STUDY
from memarena.reproduction.tables import PaperTable, chosen_tables, paper_tables
from memarena.scoring.results import OWN_METRICS, PAPER_METRICS
from memarena.sweep.plan import read_sweep

from ..e2e.harnessing import EXAMPLE, here

TABLES = [table for table in paper_tables() if not table.people]
SMALL = '[[readers]]\nname = "Qwen3-8B"\nspec = "extractive"\n[[readers]]\nname = "mine"\nspec = "extractive"\n'
FIGURES = {*PAPER_METRICS, *OWN_METRICS, *OF_STUDY, "D1to5", "fam", "f1", "F1", "leak", "no_access", "dont_know"}
FIGURES |= {
    "False Ref",
    "other",
    "refused",
    "refusals",
    "pooled",
    "best",
    "worst",
    "paired",
    "decode_tokens_per_s",
    "*",
}


def settings(folder: Path, text: str = SMALL) -> Settings:
    file = folder / "readers.toml"
    file.write_text(text, encoding="utf-8")
    return Settings(read_reader_set(file), folder / "out", EXAMPLE)


def test_every_published_ablation_is_made_of_the_configurations_that_reports_name_for_it() -> None:
    configurations = {table.name: {*table.configurations, "main-grid"} for table in paper_tables()}
    for table in load_published().printed:
        assert not table.configurations or configurations[table.name] & {*table.configurations}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_column_of_a_table_names_a_cell_that_its_configurations_have(table: PaperTable) -> None:
    printed = published_table(table.name)
    assert len(table.columns) == len(printed.columns)
    labels = {label for row in printed.rows for label in row.labels}
    assert table.cells.keys() <= labels
    timed = {memory for group in STUDY_GROUPS.values() for memory in group} if table.study else set()
    there: dict[str, set[str]] = {}
    for name in table.configurations:
        backends = typing.cast("list[str]", read_named(name).run["backends"])
        there[name] = {text.partition("=")[0] for text in backends}
    cell_names = [each for cells in table.cells.values() for each in ([cells] if isinstance(cells, str) else cells)]
    terms = [term.partition("/") for expression in table.columns if expression for term in expression.split(" - ")]
    for cell in (*cell_names, *(cell for cell, _, _ in terms if cell not in ("@", "dataset"))):
        configuration, colon, memory = cell.partition(":")
        default = table.configurations[0] if table.configurations else ""
        known = there[configuration] if colon else there.get(default, set()) | timed
        assert (memory if colon else cell) in known
    assert {figure.partition(":")[0] for _, _, figure in terms} <= FIGURES
    assert table.reader in (None, *typing.get_args(PublishedReader))


def test_the_paper_s_readers_are_read_with_what_their_servers_need() -> None:
    reader_set = read_reader_set()
    assert [reader.name for reader in reader_set.readers] == list(typing.get_args(PublishedReader))
    for reader in reader_set.readers:
        flags = " ".join(reader.server_flags)
        assert re.fullmatch(r"--revision [0-9a-f]{40} --dtype (bfloat16|float16)", flags)
        assert reader.spec.startswith("sglang:")
        assert reader.window_tokens == 16384


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("readers = 3", "readers: expected a list"),
        ("[[readers]]\nname = 'a'\nrepository = 'x/y'\ndtype = 'float16'", "readers.0.revision: missing"),
        (
            "[[readers]]\nname = 'a'\nrepository = 'x/y'\nrevision = 'main'\ndtype = 'float16'",
            "readers.0.revision: expected text of the form",
        ),
        ("[[readers]]\nspec = 'extractive'", "readers.0: name: missing"),
        ("[[readers]]\nname = 'a'\nspec = 'extractive'\nwindow = 3", "readers.0.window: there is no such setting"),
        (SMALL.replace("mine", "Qwen3-8B"), "readers: Qwen3-8B is named twice"),
        (SMALL + "[judge]\nname = 'j'", "judge.endpoint: missing"),
        ("[[readers", "not valid TOML"),
    ],
)
def test_a_bad_file_of_readers_is_one_line_with_file_and_field(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text, encoding="utf-8")
    result = here("reproduce", "all", "--plan", "--readers", file)
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: {file}: ")
    assert message in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["results-M", "--plan"], "reproduce results-M: no table of this name (known: all, results-L, "),
        ([], "reproduce: expected a table, or all"),
        (["all"], "--out: expected a folder"),
        (["all", "--executor", "slurm"], "--executor slurm: expected one of local, ray"),
        (["all", "--address", "auto"], "--address: goes with --executor ray"),
        (["all", "--dataset", "/nowhere", "--plan"], "--dataset /nowhere: "),
        (["all", "--readers", "/nowhere", "--plan"], "--readers /nowhere: cannot be read"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], message: str) -> None:
    result = here("reproduce", *arguments)
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: {message}")


def test_a_table_of_which_nothing_can_be_run_here_is_refused_with_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMOBASE_URL", raising=False)
    file = tmp_path / "readers.toml"
    file.write_text(SMALL, encoding="utf-8")
    result = here("reproduce", "configb", "--out", tmp_path / "out", "--readers", file, "--dataset", EXAMPLE)
    assert result.returncode == 2
    assert "reproduce configb: nothing of it can be run here; missing: MEMOBASE_URL" in result.stderr
    assert not (tmp_path / "out").exists()


def test_the_plan_has_a_line_for_each_table_and_counts_shared_cells_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMOBASE_URL", raising=False)
    options = settings(tmp_path)
    result = here("reproduce", "all", "--plan", "--readers", options.readers.where, "--dataset", EXAMPLE)
    assert result.returncode == 0, result.stderr
    *lines, last = result.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == [table.name for table in paper_tables()]
    full, f1 = (
        next(line for line in lines if line.startswith(f"{name}:")) for name in ("results-L-full", "results-L-f1")
    )
    assert full.startswith("results-L-full: 30 cells, ")
    assert full.partition(":")[2] == f1.partition(":")[2]
    assert "MEMOBASE_URL and MEMOBASE_TOKEN must be set: see README.md in memobase (for memobase)" in full
    assert "an address of the embedder nomic-embed-text (for memsearch)" in full
    steps = steps_of(chosen_tables("all"), options)
    assert last.startswith(f"together: {sum(len(step.cells) for step in steps)} cells")
    assert len({step.folder for step in steps}) == len(steps)


def test_files_of_sweeps_are_those_of_the_configuration(tmp_path: Path) -> None:
    steps = steps_of(chosen_tables("review5-rag-prompt"), settings(tmp_path))
    assert [step.reader for step in steps] == ["Qwen3-8B", "mine"]
    file = tmp_path / "sweep.toml"
    file.write_text(steps[0].content, encoding="utf-8")
    sweep = read_sweep(file)
    assert sweep.seeds == ("s2", "s3", "s4")
    assert sweep.run["protocol"] == "end_of_horizon"
    assert {memory.name: memory.run for memory in sweep.memories} == {
        "vanilla": {},
        "json": {"prompt_style": "json_context"},
        "text": {"prompt_style": "text_sessions"},
    }
    only = steps_of(chosen_tables("p1a-budget"), settings(tmp_path))
    assert [step.reader for step in only] == ["Qwen3-8B"], "the paper's reader of this table"
    assert [step.reader for step in steps_of(chosen_tables("mistral-structured"), settings(tmp_path))] == ["Qwen3-8B"]


# ------------------------------------------------------------------ figures


def row(allow: int, disclosures: int, deny: int, leaks: int, **metrics: float) -> Any:
    permission = SimpleNamespace(
        allow=allow, deny=deny, allow_disclosed_paper=disclosures, deny_leaked_paper=leaks, unmeasured=0
    )
    scores = {name: SimpleNamespace(value=value) for name, value in metrics.items()}
    return SimpleNamespace(permission=permission, metrics=scores, slices=(), headline_seeds=("s2", "s3", "s4"))


def test_figures_pooled_over_readers_weigh_items_and_not_readers() -> None:
    rows = [row(10, 10, 10, 0), row(30, 0, 10, 10)]
    assert pooled(rows, "U") == pytest.approx(25.0)
    assert pooled(rows, "leak") == pytest.approx(50.0)
    assert pooled(rows, "gap") == pytest.approx(25.0)
    assert pooled(rows, "cells") == 6
    assert pooled(rows, "F1") == pytest.approx(100 * 2 * 0.25 * 0.5 / 0.75)
    assert pooled([], "U") is None


def measured(**figures: float) -> Measured:
    run: Any = None
    rows = {name: ScoredRow(row(1, 1, 1, 0, all=value), run) for name, value in figures.items()}
    return Measured({("omniscient", "Qwen3-8B", name): each for name, each in rows.items()})


def test_a_difference_is_in_points_and_is_missing_where_one_side_is() -> None:
    line = Line(("x",), ("Qwen3-8B",))
    assert value_of(measured(a=0.5, b=0.2), "a/all - b/all", line, "omniscient") == pytest.approx(30.0)
    assert value_of(measured(a=0.5), "a/all - b/all", line, "omniscient") is None
    assert value_of(measured(a=0.5), "", line, "omniscient") is None


def texts(table: str, figures: Measured, options: Settings) -> Sequence[list[str]]:
    document = reproduction_document(chosen_tables(table), Gathered(figures, (), ()), options)
    (section,) = [part for part in document.sections if part.title.startswith(table)]
    assert section.table is not None
    return [[cell.text for cell in line] for line in section.table.rows]


def test_ours_and_the_difference_stand_below_the_paper_s_figure(tmp_path: Path) -> None:
    lines = texts("p1a-budget", measured(oracle=0.5), settings(tmp_path))
    assert lines[:3] == [
        ["Oracle (ego-GT)", "<= 14K", "paper", "0.726"],
        ["", "", "ours", "0.500"],
        ["", "", "Δ", "-0.226"],
    ]
    assert lines[4][3] == "n/a", "what was not measured"


def test_lines_are_those_of_the_readers_that_take_part(tmp_path: Path) -> None:
    lines = texts("results-L-full", Measured({}), settings(tmp_path))
    assert {tuple(line[1:3]) for line in lines if line[2] == "paper"} == {("Qwen3-8B", "paper"), ("mine", "paper")}
    assert len(lines) == 3 * 5 * 2


def test_a_table_that_is_not_known_names_the_known_ones() -> None:
    with pytest.raises(ReproductionError, match="known: all, results-L"):
        chosen_tables("tab:results")


@pytest.mark.parametrize(("memory", "most"), [("memobase", 1), ("bm25", 2)])
def test_of_sweeps_that_ask_the_memobase_server_one_runs_at_a_time(
    memory: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, active, peak = threading.Barrier(2), [0], [0]

    def command(self: Runner, name: str, *_: object) -> bool:
        active[0] += 1
        peak[0] = max(peak[0], active[0])
        if most > 1:
            both.wait(60)
        else:
            time.sleep(0.05)  # room for another to begin, which must not
        active[0] -= 1
        return False

    monkeypatch.setattr(Runner, "_command", command)
    options = dataclasses.replace(settings(tmp_path), gpus=2)
    steps = [Step("sweep", "grid", name, tmp_path / name, "", ((memory, "s1"),)) for name in ("Qwen3-8B", "mine")]
    Runner(options, lambda _: None, threading.Event()).run(steps)
    assert peak == [most]
