"""Tests the sweep's manifest: append-only, with a single writer, and readable after a truncated write."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena.log.store import LOG_NAME
from memarena.sweep.errors import SweepError
from memarena.sweep.manifest import MANIFEST, Begun, ManifestWriter, Sealed, Sent, read_manifest
from memarena.sweep.sealing import Seal

SEAL = Seal(cell="a", outcome="complete", message="", wall_s=1.5, machine="", files=(), sha256="")


def test_a_truncated_last_line_is_removed(tmp_path: Path) -> None:
    with ManifestWriter(tmp_path) as manifest:
        manifest.append(Begun(sweep_id="1", memarena="0"))
        manifest.append(Sealed(cell="a", attempt=1, node="n", seal=SEAL))
    complete = (tmp_path / MANIFEST).read_bytes()
    for end in range(len(complete.splitlines(keepends=True)[0]), len(complete)):
        (tmp_path / MANIFEST).write_bytes(complete[:end])
        assert read_manifest(tmp_path).sealed == {}
    with ManifestWriter(tmp_path) as manifest:
        manifest.append(Sealed(cell="a", attempt=2, node="n", seal=SEAL))
    assert read_manifest(tmp_path).sealed["a"].attempt == 2


def test_no_cell_is_sealed_twice(tmp_path: Path) -> None:
    with ManifestWriter(tmp_path) as manifest:
        manifest.append(Sealed(cell="a", attempt=1, node="n", seal=SEAL))
        with pytest.raises(ValueError, match="sealed twice"):
            manifest.append(Sealed(cell="a", attempt=2, node="n", seal=SEAL))
    (line,) = (tmp_path / MANIFEST).read_text().splitlines()
    (tmp_path / MANIFEST).write_text(f"{line}\n{line}\n")
    with pytest.raises(SweepError, match=rf"{MANIFEST}:2: damaged: cell a is sealed twice"):
        read_manifest(tmp_path)


def test_a_second_driver_is_refused(tmp_path: Path) -> None:
    with ManifestWriter(tmp_path), pytest.raises(SweepError, match="another sweep is working in this folder"):
        ManifestWriter(tmp_path)
    ManifestWriter(tmp_path).close()


def test_a_damaged_line_and_a_newer_schema_are_named(tmp_path: Path) -> None:
    with ManifestWriter(tmp_path) as manifest:
        manifest.append(Begun(sweep_id="1", memarena="0"))
        manifest.append(Sent(cell="a", attempt=1, node="n"))
    path = tmp_path / MANIFEST
    text = path.read_text()
    path.write_text(text.replace('"kind":"sent"', '"kind":"spent"'))
    with pytest.raises(SweepError, match=rf"{MANIFEST}:2: damaged"):
        read_manifest(tmp_path)
    path.write_text(text.replace('"schema_version":1', '"schema_version":2'))
    with pytest.raises(SweepError, match="schema version 2, this memarena reads up to 1"):
        ManifestWriter(tmp_path)
    ManifestWriter(tmp_path / "new").close()


def test_a_folder_with_a_run_is_refused_and_not_changed(tmp_path: Path) -> None:
    (tmp_path / LOG_NAME).touch()
    with pytest.raises(SweepError, match="holds a run; a separate folder is expected"):
        ManifestWriter(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [LOG_NAME]
