"""What a launched backend is given, and what it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena.client.backend import Deadlines, Security
from memarena.execution.backends.manifests import BackendManifest, LaunchableBackend, choose_backend
from memarena.execution.backends.overhead_baseline import measure_floor
from memarena.execution.backends.process import LaunchError, launch
from memarena.execution.backends.session import BackendSession
from memarena.execution.errors import InfraError
from memarena.log.records import Cell, Reading
from memarena.processes import GuardedProcess


def printing_environment() -> LaunchableBackend:
    code = (
        "import os, sys; sys.exit(' '.join(f'{k}={v!r}' for k, v in os.environ.items() if k.startswith('MEMARENA_')))"
    )
    manifest = BackendManifest(name="spy", kind="competitor", command=("{python}", "-c", code))
    return LaunchableBackend(name="spy", manifest=manifest, folder=Path())


def test_the_readers_key_is_kept_from_a_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other variable shows that the environment was looked at."""
    monkeypatch.setenv("MEMARENA_READER_API_KEY", "sk-secret")
    monkeypatch.setenv("MEMARENA_SHARED", "elsewhere")
    with pytest.raises(LaunchError, match="MEMARENA_SHARED='elsewhere'") as caught:
        launch(printing_environment(), tmp_path)
    assert "sk-secret" not in str(caught.value)


def test_tls_and_token_are_for_backends_that_run_elsewhere(tmp_path: Path) -> None:
    roots = tmp_path / "roots.pem"
    roots.write_text("none")
    link = BackendSession(
        choose_backend("bm25"), tmp_path / "cell", Deadlines(health_s=5), Security(tls_ca=roots, bearer_token="t")
    )
    cell = Cell(
        cell_id="bm25@x/s1",
        backend="bm25",
        reader="x",
        seed_label="s1",
        reading=Reading(max_answer_tokens=1, max_context_tokens=1),
        diagnostic=False,
    )
    try:
        assert link.open(cell).name == "bm25"
    finally:
        link.close()


def test_a_floor_that_cannot_be_measured_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = GuardedProcess.start.__func__  # type: ignore[attr-defined]

    def broken(cls: type[GuardedProcess], argv: list[str], /, **more: object) -> GuardedProcess:
        return start(cls, [argv[0], "-c", "raise SystemExit(7)"], **more)  # type: ignore[no-any-return]

    monkeypatch.setattr(GuardedProcess, "start", classmethod(broken))
    with pytest.raises(InfraError, match=r"floor .* exit code 7"):
        measure_floor(tmp_path, 1)
