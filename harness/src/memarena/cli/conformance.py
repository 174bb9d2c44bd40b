"""``memarena conformance``: tests any implementation of the contract against SPEC.md, given only its address."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Annotated

import typer
from memarena_dataset.printing import echo
from memarena_dataset.programs import EXIT_FAULTS

from memarena.client.backend import Security
from memarena.conformance import (
    CheckResult,
    ConformanceError,
    RealModel,
    Settings,
    check_line,
    restart_by,
    result_line,
    run_suite,
    select,
    shared_causes,
    summary_line,
    write_junit,
)

API_KEY_VARIABLE = "MEMARENA_MODEL_API_KEY"
_ADDRESS = re.compile(r"(?:\[[0-9a-fA-F:]+\]|[^\s:=\[\]/]+):\d{1,5}")


def conformance(
    target: Annotated[
        str | None, typer.Option(help="HOST:PORT of the backend; it must run already. Required, but for --list.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write the results as JUnit XML to this file.")] = None,
    advertise: Annotated[
        str | None, typer.Option(help="Host by which the backend reaches this machine; default: 127.0.0.1.")
    ] = None,
    model_endpoint: Annotated[
        str | None,
        typer.Option(
            help="Base URL of an OpenAI-compatible server that extracts, for backends that need a real model."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model at --model-endpoint; default: the first it lists.")] = None,
    restart_command: Annotated[
        str | None,
        typer.Option(
            help="Command that kills the backend with SIGKILL and starts it again on the same address; without it "
            "what a crash costs is not checked."
        ),
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="File that the backend logs to: its last lines are shown if it dies.")
    ] = None,
    tls_ca: Annotated[Path | None, typer.Option(help="PEM file: connect by TLS with these roots.")] = None,
    token_env: Annotated[
        str | None, typer.Option(help="Environment variable that holds the bearer token of the backend.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only this check (ing.replay) or chapter (ing), repeatable; names: --list.")
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that a single call may take.", min=1.0)] = 30.0,
    wait: Annotated[float, typer.Option(help="Seconds to wait for the backend to be SERVING.", min=0.0)] = 10.0,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the life and of all words; default: drawn, and printed.", min=0)
    ] = None,
    thorough: Annotated[bool, typer.Option("--thorough", help="A longer life, asked for all that it holds.")] = False,
    list_checks: Annotated[bool, typer.Option("--list", help="Print the checks with their clauses and stop.")] = False,
) -> None:
    """Test any implementation of the contract. Exit 0 if it passes, 1 if a check fails, 2 if it cannot be tested.

    The contract is proto/SPEC.md; each check names the clauses that it holds
    the backend to.

    Examples:
      memarena conformance --target 127.0.0.1:50051
      memarena conformance --target 127.0.0.1:50051 --only ing --only dig

    The API key for --model-endpoint is taken from MEMARENA_MODEL_API_KEY.
    """
    if list_checks:
        for check in select(only or ()):
            echo(check_line(check))
        return
    if target is None or not _ADDRESS.fullmatch(target):
        raise ConformanceError(f"--target {target or ''}: expected HOST:PORT")
    if junit is not None and not junit.absolute().parent.is_dir():
        raise ConformanceError(f"--junit {junit}: no such folder")
    if log is not None and not log.is_file():
        raise ConformanceError(f"--log {log}: no such file")
    if model is not None and model_endpoint is None:
        raise ConformanceError("--model: only together with --model-endpoint")
    real = RealModel(model_endpoint, model, os.environ.get(API_KEY_VARIABLE)) if model_endpoint else None
    result = run_suite(
        target,
        security=_security(tls_ca, token_env),
        only=only or (),
        advertise=advertise,
        real_model=real,
        restart=restart_by(restart_command) if restart_command is not None else None,
        settings=Settings(timeout_s=timeout, start_s=wait, log=log, seed=seed, thorough=thorough),
        on_result=_print,
    )
    for line in shared_causes(result):
        echo(line)
    echo(summary_line(result))
    if junit is not None:
        write_junit(result, junit)
    if not result.passed:
        raise typer.Exit(EXIT_FAULTS)


def _print(result: CheckResult) -> None:
    echo(result_line(result))
    sys.stdout.flush()


def _security(tls_ca: Path | None, token_env: str | None) -> Security:
    if tls_ca is not None and not tls_ca.is_file():
        raise ConformanceError(f"--tls-ca {tls_ca}: no such file")
    token = None
    if token_env is not None:
        token = os.environ.get(token_env, "").strip()
        if not token or not (token.isascii() and token.isprintable()):
            raise ConformanceError(f"--token-env {token_env}: expected a variable with a token of printable ASCII")
    return Security(tls_ca=tls_ca, bearer_token=token)
