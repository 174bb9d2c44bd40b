"""Tests Croissant metadata: MLCommons' library reads and checks it, and its hashes match the files."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from memarena_dataset.croissant import croissant
from memarena_dataset.errors import DatasetError

EXAMPLE = Path(__file__).resolve().parents[1] / "data" / "example"
RECORD_SETS = ("corpus_sessions", "agents_personas", "events", "d7_qa", "d4_permission")
READER = """
import json, sys
import mlcroissant
data = mlcroissant.Dataset(jsonld=sys.argv[1])
rows = {name: list(data.records(record_set=name)) for name in sys.argv[2:]}
print(json.dumps(rows, default=bytes.decode))
"""
OPTIONS = (
    *("--license", "https://opensource.org/license/mit", "--url", "https://example.org/data", "--creator", "somebody"),
    *("--published", "2026-11-24", "--version", "1.0.0", "--cite-as", "somebody 2026", "--name", "example"),
)


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set with the metadata file that the command wrote."""
    folder = tmp_path_factory.mktemp("described") / "example"
    shutil.copytree(EXAMPLE, folder)
    command = [sys.executable, "-m", "memarena", "dataset", "croissant", str(folder), *OPTIONS]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stdout) == (0, f"{folder / 'croissant.json'}\n"), result.stderr
    return folder


@pytest.fixture(scope="module")
def library_reading(described: Path) -> tuple[dict[str, list[dict[str, Any]]], str]:
    """Rows by record set as the library reads them, and its output.

    The library runs in its own process, since it leaves files open.
    """
    result = subprocess.run(
        [sys.executable, "-c", READER, str(described / "croissant.json"), *RECORD_SETS],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), result.stderr


def test_the_library_reports_no_problem(library_reading: tuple[dict[str, list[dict[str, Any]]], str]) -> None:
    _, output = library_reading
    assert "warning" not in output.lower() and "error" not in output.lower(), output


@pytest.mark.parametrize("record_set", RECORD_SETS)
def test_the_library_reads_the_rows(
    described: Path, library_reading: tuple[dict[str, list[dict[str, Any]]], str], record_set: str
) -> None:
    (path,) = described.glob(f"**/{record_set}.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    loaded_rows = library_reading[0][record_set]
    fields = [name.partition("/")[2] for name in loaded_rows[0]]
    assert fields
    assert [[loaded[f"{record_set}/{name}"] for name in fields] for loaded in loaded_rows] == [
        [pytest.approx(row[name]) if isinstance(row[name], float) else row[name] for name in fields] for row in rows
    ]


def test_every_file_has_its_hash(described: Path) -> None:
    files = {entry["@id"]: entry["sha256"] for entry in croissant(described)["distribution"]}
    paths = [path for path in described.rglob("*.json*") if path.name != "croissant.json"]
    assert files == {
        path.relative_to(described).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
    }


def test_a_folder_without_a_data_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"corpus_sessions\.jsonl is missing"):
        croissant(tmp_path)


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (b"\xe9\n", ":1: not UTF-8"),
        (b"hello\n", ":1: broken JSON"),
        (b'{"x": ' + b"1" * 5001 + b"}\n", ":1: a whole number of 5,001 digits"),
        (b"[" * 50_000 + b"]" * 50_000 + b"\n", ":1: JSON nested too deeply"),
    ],
)
def test_a_first_row_that_cannot_be_read_is_named(spoilable: Any, first: bytes, message: str) -> None:
    corpus = spoilable.path / "corpus_sessions.jsonl"
    corpus.write_bytes(first + corpus.read_bytes())
    with pytest.raises(DatasetError, match=rf"corpus_sessions\.jsonl{message}"):
        croissant(spoilable.path)


def test_a_byte_order_mark_is_accepted_and_an_empty_corpus_is_refused(spoilable: Any) -> None:
    corpus = spoilable.path / "corpus_sessions.jsonl"
    before = croissant(spoilable.path)["recordSet"]
    corpus.write_bytes(b"\xef\xbb\xbf" + corpus.read_bytes())
    assert croissant(spoilable.path)["recordSet"] == before
    corpus.write_text("{}\n")
    with pytest.raises(DatasetError, match=r"corpus_sessions\.jsonl:1: "):
        croissant(spoilable.path)
