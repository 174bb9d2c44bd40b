"""Tests launched backends: which variables and credentials they get, and what happens if one dies at its start."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena.client.backend import Deadlines, Security
from memarena.execution.backends.manifests import BackendManifest, LaunchableBackend, choose_backend
from memarena.execution.backends.overhead_baseline import measure_floor
from memarena.execution.backends.process import LaunchError, launch
from memarena.execution.backends.session import BackendSession
from memarena.execution.errors import CellError, InfraError
from memarena.log.records import Cell, Reading
from memarena.processes import GuardedProcess

CELL = Cell(
    cell_id="bm25@x/s1",
    backend="bm25",
    reader="x",
    seed_label="s1",
    reading=Reading(max_answer_tokens=1, max_context_tokens=1),
    diagnostic=False,
)


def printing_environment() -> LaunchableBackend:
    code = (
        "import os, sys; sys.exit(' '.join(f'{k}={v!r}' for k, v in os.environ.items() if k.startswith('MEMARENA_')))"
    )
    manifest = BackendManifest(name="spy", kind="competitor", command=("{python}", "-c", code))
    return LaunchableBackend(name="spy", manifest=manifest, folder=Path())


def test_the_readers_key_is_kept_from_a_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other variable is the control: it shows that the environment is printed."""
    monkeypatch.setenv("MEMARENA_READER_API_KEY", "sk-secret")
    monkeypatch.setenv("MEMARENA_SHARED", "elsewhere")
    with pytest.raises(LaunchError, match="MEMARENA_SHARED='elsewhere'") as caught:
        launch(printing_environment(), tmp_path)
    assert "sk-secret" not in str(caught.value)


def test_a_folder_that_is_removed_while_a_backend_starts_is_not_the_backend_s_failure(tmp_path: Path) -> None:
    cell_dir = tmp_path / "cell"
    code = f"import shutil, time; shutil.rmtree({str(cell_dir)!r}); time.sleep(600)"
    manifest = BackendManifest(name="slow", kind="competitor", command=("{python}", "-c", code))
    with pytest.raises(InfraError, match=f"{cell_dir}: was removed while backend slow started"):
        launch(LaunchableBackend(name="slow", manifest=manifest, folder=Path()), cell_dir, timeout_s=30)


def test_tls_and_token_are_for_backends_that_run_elsewhere(tmp_path: Path) -> None:
    roots = tmp_path / "roots.pem"
    roots.write_text("none")
    link = BackendSession(
        choose_backend("bm25"), tmp_path / "cell", Deadlines(health_s=5), Security(tls_ca=roots, bearer_token="t")
    )
    try:
        assert link.open(CELL).name == "bm25"
    finally:
        link.close()


STRUCK = """
import os, signal, sys
from pathlib import Path
struck = Path(sys.argv[1])
done = struck.read_text() if struck.exists() else ""
struck.write_text(done + "x")
if len(done) < int(sys.argv[2]):
    if len(done) == 1:  # the second time only once it has said where it listens
        Path(sys.argv[4]).write_text("127.0.0.1:9")
    os.kill(os.getpid(), signal.SIGKILL if sys.argv[3] == "killed" else signal.SIGTERM)
from memarena_backend_bm25.__main__ import main
sys.argv = ["bm25", "--listen", "127.0.0.1:0", "--address-file", sys.argv[4], "--data-dir", sys.argv[5]]
main()
"""


@pytest.mark.parametrize(("kills", "how", "starts"), [(2, "killed", 3), (3, "killed", 3), (1, "by itself", 1)])
def test_a_backend_that_is_killed_while_it_starts_is_started_again(
    tmp_path: Path, kills: int, how: str, starts: int
) -> None:
    """A killed process is started again at most twice; one that ends by itself is not."""
    struck = tmp_path / "struck"
    command = ("{python}", "-c", STRUCK, str(struck), str(kills), how, "{address_file}", "{data_dir}")
    manifest = BackendManifest(name="struck", kind="competitor", command=command)
    choice = LaunchableBackend(name="struck", manifest=manifest, folder=tmp_path)
    link = BackendSession(choice, tmp_path / "cell", Deadlines(health_s=5), Security())
    try:
        if kills == starts - 1:
            assert link.open(CELL).name == "bm25"
        else:
            with pytest.raises(CellError, match="did not start: exit code 137" if how == "killed" else "exit code 143"):
                link.open(CELL)
    finally:
        link.close()
    assert struck.read_text() == "x" * starts


def test_a_floor_that_cannot_be_measured_gives_a_one_line_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = GuardedProcess.start.__func__  # type: ignore[attr-defined]

    def broken(cls: type[GuardedProcess], argv: list[str], /, **more: object) -> GuardedProcess:
        return start(cls, [argv[0], "-c", "raise SystemExit(7)"], **more)  # type: ignore[no-any-return]

    monkeypatch.setattr(GuardedProcess, "start", classmethod(broken))
    with pytest.raises(InfraError, match=r"floor .* exit code 7"):
        measure_floor(tmp_path, 1)
