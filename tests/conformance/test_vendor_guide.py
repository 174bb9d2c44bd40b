"""Tests that docs/vendors.md names only checks, clauses, flags and files that exist."""

from __future__ import annotations

import re
from pathlib import Path

from memarena.cli.main import Commands, app
from memarena.conformance import all_checks
from typer.testing import CliRunner

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "vendors.md").read_text(encoding="utf-8")
SPEC = (ROOT / "proto" / "SPEC.md").read_text(encoding="utf-8")


def test_checks_and_clauses_exist() -> None:
    known = {check.check_id for check in all_checks()} | {check.chapter for check in all_checks()}
    check_ids = set(re.findall(r"`([a-z]{3}\.[a-z0-9-]+)`", GUIDE)) | set(re.findall(r"--only ([a-z.-]+)", GUIDE))
    assert len(check_ids) > 20
    assert check_ids - known == set()
    clauses = set(re.findall(r"\b[A-Z]{3}-\d+\b", GUIDE)) - {"UTF-8"}
    assert clauses - set(re.findall(r"\*\*([A-Z]{3}-\d+)\*\*", SPEC)) == set()


def test_a_line_of_the_checklist_names_a_check_that_cites_its_clause() -> None:
    cites = {check.check_id: set(check.clauses) for check in all_checks()}
    rows = re.findall(r"^\| [^|]+\? \| ([A-Z0-9, -]+) \| ([^|]+) \|$", GUIDE, re.MULTILINE)
    assert len(rows) > 20
    for clauses, checks in rows:
        cited = set().union(*(cites[check] for check in re.findall(r"`([^`]+)`", checks)))
        assert set(clauses.split(", ")) <= cited


def test_flags_exist() -> None:
    flags = set(re.findall(r"`(--[a-z-]+)", GUIDE)) - {"--backend"}
    command = Commands.entries["conformance"].load("conformance")
    options = {flag for parameter in command.params for flag in parameter.opts}
    assert flags - options == set()
    assert CliRunner().invoke(app, ["conformance", "--help"]).exit_code == 0


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", GUIDE)
    assert len(links) >= 5
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []
