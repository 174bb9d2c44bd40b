"""Starts a run from Python, for notebooks and scripts."""

from __future__ import annotations

from pathlib import Path

from memarena import judging
from memarena.execution.display import Display
from memarena.execution.engine import execute
from memarena.execution.errors import RunError
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunOutcome, RunRequest


def run(
    out: str | Path,
    *,
    resume: bool = False,
    reader_api_key: str | None = None,
    display: Display | None = None,
    **config: object,
) -> RunOutcome:
    """Carry out a run, as ``memarena run`` does. Ctrl-C ends it cleanly; the same call with ``resume`` continues it.

    Args:
        out: a new folder for the log, or with ``resume`` the folder of the run to continue.
        resume: continue the run in ``out``; without ``config``, with the settings in its log.
        reader_api_key: for readers behind a URL.
        display: gets the progress; None shows nothing.
        config: the fields of a run (:class:`memarena.execution.planning.config.RunConfig`). ``dataset``, ``backends``
            and ``readers`` are required; a reader may be a name.

    Returns:
        How it ended, and how many questions are left.

    Raises:
        RunError: a field is wrong, or the run cannot begin.
        InfraError: a model server or the machine failed.
    """
    if not config and not resume:
        raise RunError("run: dataset, backends and readers are expected, or resume=True")
    run_config = parse_config(_with_readers(config), "run") if config else None
    request = RunRequest(
        out=Path(out),
        config=run_config,
        resume=resume,
        reader_api_key=reader_api_key,
        scoring_files=(judging.data_files,),
    )
    return execute(request, display) if display is not None else execute(request)


def _with_readers(config: dict[str, object]) -> dict[str, object]:
    readers = config.get("readers")
    if not isinstance(readers, list | tuple):
        return config
    return {**config, "readers": [{"spec": reader} if isinstance(reader, str) else reader for reader in readers]}
