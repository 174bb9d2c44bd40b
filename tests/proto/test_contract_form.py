"""Tests the form of the contract: lint, breaking changes, stubs, and references to clauses that do not exist."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2
from memarena_proto import memory_backend_pb2 as pb

ROOT = Path(__file__).parents[2]
PROTO = ROOT / "proto"
SOURCE = Path("memarena/v1/memory_backend.proto")
BASELINE = PROTO / "baseline.binpb"
BUF = Path(sys.executable).parent / "buf"


def buf(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(BUF), *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def changed_contract(folder: Path, old: str, new: str) -> Path:
    """A copy of the contract in which one text, which occurs once, is replaced."""
    shutil.copy(PROTO / "buf.yaml", folder)
    (folder / SOURCE).parent.mkdir(parents=True)
    text = (PROTO / SOURCE).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (folder / SOURCE).write_text(text.replace(old, new), encoding="utf-8")
    return folder


BATCH_ID = "  string batch_id = 4;"


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        (BATCH_ID, "  string batch_id = 14;", "batch_id"),
        (BATCH_ID, "  string batch_key = 4;", "batch_key"),
        (BATCH_ID, "  bytes batch_id = 4;", "batch_id"),
        ("  CAPABILITY_DURABLE = 5;", "  CAPABILITY_DURABLE = 57;", "Capability"),
        ("  rpc Reset(ResetRequest) returns (ResetResponse);", "", "Reset"),
    ],
    ids=["renumbered", "renamed", "retyped", "enum renumbered", "rpc removed"],
)
def test_a_breaking_change_is_found(tmp_path: Path, old: str, new: str, word: str) -> None:
    result = buf(changed_contract(tmp_path, old, new), "breaking", "--against", str(BASELINE))
    assert result.returncode != 0
    assert word in result.stdout


def test_an_added_field_breaks_nothing(tmp_path: Path) -> None:
    addition = f"{BATCH_ID}\n  // OPTIONAL. Something new.\n  string addition = 99;"
    result = buf(changed_contract(tmp_path, BATCH_ID, addition), "breaking", "--against", str(BASELINE))
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_field_without_a_comment_is_found_by_lint(tmp_path: Path) -> None:
    result = buf(changed_contract(tmp_path, BATCH_ID, f"{BATCH_ID}\n  string addition = 99;"), "lint")
    assert result.returncode != 0
    assert "addition" in result.stdout


def test_the_baseline_holds_the_whole_service() -> None:
    """An empty baseline would let every change pass."""
    files = descriptor_pb2.FileDescriptorSet.FromString(BASELINE.read_bytes()).file
    methods = [method.name for file in files for service in file.service for method in service.method]
    assert methods == ["Describe", "Ingest", "Search", "Answer", "Reset"]
    header = next(message for file in files for message in file.message_type if message.name == "DayHeader")
    assert {field.name: field.number for field in header.field}["batch_id"] == pb.DayHeader.BATCH_ID_FIELD_NUMBER


def test_the_stubs_are_found_to_differ_when_the_contract_has_moved(tmp_path: Path) -> None:
    """The same comparison as ``make proto-check``, in a copy whose contract has one field more."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    shutil.copytree(PROTO, tmp_path / "proto")
    cache = ROOT / ".cache"
    if cache.exists():
        (tmp_path / ".cache").symlink_to(cache)
    command = [sys.executable, str(tmp_path / "scripts" / "generate_stubs.py"), "--check"]
    same = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert (same.returncode, same.stderr) == (0, "")
    source = tmp_path / "proto" / SOURCE
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace(BATCH_ID, f"{BATCH_ID}\n  // More.\n  string addition = 99;"), encoding="utf-8")
    moved = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert moved.returncode == 1
    assert "addition" in moved.stderr
    assert "run `make proto`" in moved.stderr


CLAUSE = re.compile(r"\b(GEN|IDN|TXT|DSC|ING|DIG|SRC|ANS|RST|FGT|MOD|EVD|PRV|LIM|ERR|HLT|SEC|VER)-(\d+)\b")


STATED = re.compile(r"^(?:- |\| )\*\*([A-Z]{3})-(\d+)\*\*", re.MULTILINE)


def clauses_stated() -> list[str]:
    spec = (PROTO / "SPEC.md").read_text(encoding="utf-8")
    return [f"{part}-{number}" for part, number in STATED.findall(spec)]


def test_clauses_are_numbered_without_gaps_and_once() -> None:
    chapters: dict[str, list[int]] = {}
    for clause in clauses_stated():
        part, number = clause.split("-")
        chapters.setdefault(part, []).append(int(number))
    assert len(chapters) == 18
    for part, numbers in chapters.items():
        assert numbers == list(range(1, len(numbers) + 1)), part


def test_every_clause_that_is_cited_anywhere_is_stated() -> None:
    clauses = set(clauses_stated())
    file_list = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    suffixes = (".py", ".pyi", ".md", ".proto", ".toml")
    cited = {
        (name, f"{match[1]}-{match[2]}")
        for name in file_list.split("\0")
        if name.endswith(suffixes) and (ROOT / name).exists()
        for match in CLAUSE.finditer((ROOT / name).read_text(encoding="utf-8"))
    }
    assert len({clause for _, clause in cited}) > 20
    assert sorted((name, clause) for name, clause in cited if clause not in clauses) == []


@pytest.mark.parametrize("rpc", ["Describe", "Ingest", "Search", "Answer", "Reset", "Forget"])
def test_every_rpc_has_an_error_table(rpc: str) -> None:
    spec = (PROTO / "SPEC.md").read_text(encoding="utf-8")
    chapter = re.search(rf"^## [A-Z]{{3}}: {rpc}$(.*?)^## ", spec, re.MULTILINE | re.DOTALL)
    assert chapter is not None
    assert "| condition | code | what the caller does |" in chapter[1]


FIELD = re.compile(r"((?:^ +//[^\n]*\n)+)^ +(repeated )?([\w.]+) (\w+) = \d+;", re.MULTILINE)
NUMBERS = {"uint32", "uint64", "double", "bool"}


def test_every_field_says_whether_it_must_be_there_and_what_its_zero_means() -> None:
    text = (PROTO / SOURCE).read_text(encoding="utf-8")
    blocks = re.findall(r"^message \w+ \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    fields = [
        field for block in blocks for field in FIELD.findall(re.sub(r"^  oneof .*?^  \}", "", block, flags=re.M | re.S))
    ]
    assert len(fields) > 80
    for comment, repeated, kind, name in fields:
        words = re.sub(r"\s*//\s*", " ", comment)
        assert re.match(r" (REQUIRED|OPTIONAL|REPEATED)\b", words), name
        assert (
            bool(repeated) == words.startswith(" REPEATED")
            or "REQUIRED in the opening frame" in words
            or name == "digest_versions"
        ), name
        if words.startswith(" OPTIONAL"):
            assert re.search(r"Zero value:|Empty:|Absent:", words), name
        if words.startswith(" REQUIRED") and kind in NUMBERS and not repeated:
            assert re.search(r"Zero value:|at least 1|for this version", words), name
