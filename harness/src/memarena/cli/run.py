"""``memarena run``: flags to a configuration, then one call."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from memarena.cli.data_files import SCORING_FILES
from memarena.cli.errors import EXIT_INCOMPLETE, EXIT_INTERRUPTED
from memarena.cli.progress import ProgressDisplay
from memarena.client.backend import Security
from memarena.run.config import RunConfig, load_config, parse_config
from memarena.run.engine import execute
from memarena.run.errors import RunError
from memarena.run.request import RunOutcome, RunRequest

EDGE_CONTEXT_TOKENS = 512
EDGE_ANSWER_TOKENS = 64
CELL_TOKEN_CHARS = 16
"""Shortest token that is taken for a whole cell: it is a key to the run's models."""

_NO_SETTINGS = {"file", "out", "resume", "tls_ca", "bearer_token_file"}
"""Parameters that may stand beside a configuration file, and beside --resume without repeating any setting."""


def run(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(help="A run's configuration as YAML, instead of flags.")] = None,
    dataset: Annotated[Path | None, typer.Option(help="Data set folder.")] = None,
    backend: Annotated[
        str | None,
        typer.Option(help="Backends, separated by commas: a name, HOST:PORT, NAME=HOST:PORT, or a backend.toml."),
    ] = None,
    reader: Annotated[
        str | None,
        typer.Option(
            help="Readers, separated by commas: embedded, extractive, or the URL of an OpenAI-compatible API."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run: its log, the backends' data, their output.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    model: Annotated[str | None, typer.Option(help="Model behind the reader's URL, where it serves several.")] = None,
    reader_window: Annotated[int | None, typer.Option(help="Context window of the reader in tokens.")] = None,
    no_system_role: Annotated[
        bool, typer.Option("--no-system-role", help="The reader's chat template has no system role.")
    ] = False,
    embedder: Annotated[
        str | None, typer.Option(help="Embedding model for memories: embedded, or the URL of an OpenAI-compatible API.")
    ] = None,
    embedder_model: Annotated[str | None, typer.Option(help="Model behind the embedder's URL.")] = None,
    extractor: Annotated[
        str | None, typer.Option(help="URL of the model that extracts facts while ingesting; default: the reader.")
    ] = None,
    extractor_model: Annotated[str | None, typer.Option(help="Model behind the extractor's URL.")] = None,
    reranker: Annotated[str | None, typer.Option(help="URL of a rerank API for memories.")] = None,
    reranker_model: Annotated[str | None, typer.Option(help="Model behind the reranker's URL.")] = None,
    protocol: Annotated[str, typer.Option(help="interleaved or end_of_horizon.")] = "interleaved",
    seeds: Annotated[str, typer.Option(help="s1 (greedy), s2, s3, s4 (temperature 0.3), separated by commas.")] = "s1",
    max_context_tokens: Annotated[int, typer.Option(help="Tokens of context that a reader may see.")] = 8192,
    max_answer_tokens: Annotated[int, typer.Option(help="Tokens of an answer.")] = 400,
    edge: Annotated[bool, typer.Option("--edge", help="Edge budget: 512 context tokens, 64 answer tokens.")] = False,
    max_items: Annotated[
        int | None, typer.Option(help="Items that Search may return; default: the backend's choice.")
    ] = None,
    prompt_style: Annotated[str, typer.Option(help="backend, text_sessions or json_context.")] = "backend",
    thinking: Annotated[str, typer.Option(help="default, on or off, for readers that can think.")] = "default",
    central_reading: Annotated[
        bool, typer.Option("--central-reading", help="Read over Search's items even where a backend has an Answer.")
    ] = False,
    option: Annotated[list[str] | None, typer.Option(help="BACKEND.KEY=VALUE, repeatable.")] = None,
    ego: Annotated[list[str] | None, typer.Option(help="Only this ego, repeatable.")] = None,
    question_ids: Annotated[Path | None, typer.Option(help="File with one instance id per line: only these.")] = None,
    limit: Annotated[int | None, typer.Option(help="At most this many questions, a seeded sample.")] = None,
    order_seed: Annotated[int, typer.Option(help="Seed of the order of questions and of --limit.")] = 0,
    diagnostic: Annotated[
        list[str] | None, typer.Option(help="A backend given by address that is a diagnostic, repeatable.")
    ] = None,
    evidence: Annotated[
        bool, typer.Option("--evidence/--no-evidence", help="Send privileged evidence to diagnostic backends.")
    ] = True,
    deadline: Annotated[
        list[str] | None,
        typer.Option(help="CALL=SECONDS for describe, ingest, search, answer, reset, health; repeatable."),
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            help="CALL.calls=N or CALL.tokens=N: what one ingest, search or answer may spend on models; repeatable."
        ),
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder of model replies to use again; the run then times and meters nothing.")
    ] = None,
    keep_texts: Annotated[
        bool, typer.Option("--keep-texts/--no-keep-texts", help="Keep prompts and outputs in the log.")
    ] = True,
    id_key: Annotated[
        str | None, typer.Option(help="64 hex digits: fixed opaque ids and tokens, for byte-identical requests.")
    ] = None,
    gateway_host: Annotated[
        str, typer.Option(help="Address that the gateway listens on; not loopback for backends that run elsewhere.")
    ] = "127.0.0.1",
    gateway_url: Annotated[
        str | None, typer.Option(help="How backends reach the gateway, e.g. http://harness:8100/v1.")
    ] = None,
    gateway_port: Annotated[int, typer.Option(help="Port of the gateway; 0: the system chooses.")] = 0,
    floor_samples: Annotated[int, typer.Option(help="Round trips to measure for the floor; 0: none.")] = 200,
    warm_up: Annotated[
        int, typer.Option(help="Requests to each reader before anything is timed, of every prompt length.")
    ] = 0,
    meter: Annotated[
        str,
        typer.Option(
            help="Meters, separated by commas: auto (nvml,hwmon,procfs), none, nvml[:GPU], hwmon, procfs, replay:FILE."
        ),
    ] = "auto",
    system_rail: Annotated[
        str | None, typer.Option(help="Channel of the rail that feeds the whole machine, as hwmon names it.")
    ] = None,
    idle_s: Annotated[
        float, typer.Option(help="Seconds of rest before the first cell and after the last, for net energy (120).")
    ] = 0.0,
    after_crash: Annotated[
        str,
        typer.Option(
            help="After a crash go on in a namespace that the backend still holds (verify), or in a fresh one."
        ),
    ] = "verify",
    backend_restarts: Annotated[int, typer.Option(help="How often a backend that ended is started again.")] = 10,
    tls_ca: Annotated[Path | None, typer.Option(help="PEM file: connect to backends by TLS with these roots.")] = None,
    bearer_token_file: Annotated[Path | None, typer.Option(help="File with a bearer token for backends.")] = None,
) -> None:
    """Stream a data set to memory backends, ask its questions, and log everything.

    The API key of a reader is taken from MEMARENA_READER_API_KEY; MEMARENA_EMBEDDER_API_KEY, MEMARENA_EXTRACTOR_API_KEY
    and MEMARENA_RERANKER_API_KEY are for the others. MEMARENA_CELL_TOKEN is the key that a memory's own server sends to
    the gateway, where that server is configured once.
    """
    if out is None:
        raise RunError("--out: expected a folder for the run's log")
    values: dict[str, object] = {
        "dataset": dataset,
        "backends": _list(backend),
        "readers": [
            {"spec": spec, "model": model, "window_tokens": reader_window, "no_system_role": no_system_role}
            for spec in _list(reader)
        ],
        "embedder": _helper("embedder", embedder, embedder_model),
        "extractor": _helper("extractor", extractor, extractor_model),
        "reranker": _helper("reranker", reranker, reranker_model),
        "protocol": protocol,
        "seeds": _list(seeds),
        "max_context_tokens": EDGE_CONTEXT_TOKENS if edge else max_context_tokens,
        "max_answer_tokens": EDGE_ANSWER_TOKENS if edge else max_answer_tokens,
        "max_items": max_items,
        "prompt_style": prompt_style,
        "thinking": thinking,
        "central_reading": central_reading,
        "options": _options(option or []),
        "egos": ego or [],
        "question_ids": read_ids(question_ids) if question_ids else [],
        "limit": limit,
        "order_seed": order_seed,
        "diagnostic": diagnostic or [],
        "evidence": evidence,
        "deadlines_s": _deadlines(deadline or []),
        "budgets": _budgets(budget or []),
        "cache": None if cache is None else cache.absolute(),
        "keep_texts": keep_texts,
        "id_key": id_key,
        "gateway_host": gateway_host,
        "gateway_url": gateway_url,
        "gateway_port": gateway_port,
        "floor_samples": floor_samples,
        "warm_up": warm_up,
        "meters": _list(meter),
        "system_rail": system_rail,
        "after_crash": after_crash,
        "backend_restarts": backend_restarts,
        "idle_s": idle_s,
    }
    request = RunRequest(
        out=out,
        config=_config(file, values, _settings_given(context), resume=resume),
        resume=resume,
        security=_security(tls_ca, bearer_token_file),
        reader_api_key=os.environ.get("MEMARENA_READER_API_KEY"),
        cell_token=_cell_token(),
        scoring_files=SCORING_FILES,
    )
    finish(run_request(request), out)


def run_request(request: RunRequest) -> RunOutcome:
    """Do the run with progress on standard error; SIGTERM is taken like Ctrl-C."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        return execute(request, ProgressDisplay())
    finally:
        signal.signal(signal.SIGTERM, before)


def finish(outcome: RunOutcome, out: Path) -> None:
    """Say how the run ended and where its log is; exit with its code."""
    say = f"{outcome.reason}: {outcome.left} questions left" if outcome.left else outcome.reason
    sys.stderr.write(f"{say}; log in {out}\n")
    if outcome.reason == "interrupted":
        sys.stderr.write(f"go on with: memarena run --out {out} --resume\n")
        sys.exit(EXIT_INTERRUPTED)
    if outcome.left:
        sys.stderr.write(
            f"some questions failed for reasons of our own; ask them again with: memarena run --out {out} --resume\n"
        )
        sys.exit(EXIT_INCOMPLETE)


def read_ids(path: Path) -> list[str]:
    """Instance ids of a file, one per line; empty lines and lines that begin with # are passed over."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"--question-ids {path}: cannot be read: {error}") from error
    ids = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not ids:
        raise RunError(f"--question-ids {path}: names no instance; expected one id per line")
    return ids


def _settings_given(context: typer.Context) -> list[str]:
    """Flags on the command line that a run's configuration decides, as a user writes them."""
    names = [name for name in context.params if name not in _NO_SETTINGS]
    sources = {name: context.get_parameter_source(name) for name in names}
    return [
        f"--{name.replace('_', '-')}" for name, source in sources.items() if source and source.name == "COMMANDLINE"
    ]


def _config(file: Path | None, values: dict[str, object], given: list[str], *, resume: bool) -> RunConfig | None:
    if file is not None:
        if given:
            raise RunError(f"{file}: expected either a file or flags that say what to run, not both (got {given[0]})")
        return load_config(file)
    if resume and not given:
        return None
    for flag, name in (("--dataset", "dataset"), ("--backend", "backends"), ("--reader", "readers")):
        if not values[name]:
            hint = f"; beside {given[0]}, --resume needs all settings of the run again" if resume else ""
            raise RunError(f"{flag}: missing{hint}")
    return parse_config(values, "memarena run")


def _list(text: str | None) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()] if text else []


def _helper(role: str, spec: str | None, model: str | None) -> dict[str, str | None] | None:
    if spec is None and model is not None:
        raise RunError(f"--{role}-model {model}: names a model behind --{role} URL, which is missing")
    return None if spec is None else {"spec": spec, "model": model}


def _options(pairs: list[str]) -> dict[str, dict[str, str]]:
    options: dict[str, dict[str, str]] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        backend, dot, key = name.rpartition(".")
        if not (equals and dot and backend and key):
            raise RunError(f"--option {pair}: expected BACKEND.KEY=VALUE")
        options.setdefault(backend, {})[key] = value
    return options


def _cell_token() -> str | None:
    """The token in MEMARENA_CELL_TOKEN, None if there is none. Raises RunError for one that cannot be sent."""
    token = os.environ.get("MEMARENA_CELL_TOKEN") or None
    sound = token is None or (len(token) >= CELL_TOKEN_CHARS and all("!" <= character <= "~" for character in token))
    if not sound:
        raise RunError(
            f"MEMARENA_CELL_TOKEN: expected at least {CELL_TOKEN_CHARS} printable ASCII characters, no space"
        )
    return token


def _deadlines(pairs: list[str]) -> dict[str, str]:
    deadlines = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise RunError(f"--deadline {pair}: expected CALL=SECONDS")
        deadlines[name] = value
    return deadlines


def _budgets(pairs: list[str]) -> dict[str, dict[str, str]]:
    budgets: dict[str, dict[str, str]] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        call, dot, what = name.partition(".")
        if not (equals and dot and what in ("calls", "tokens")):
            raise RunError(f"--budget {pair}: expected CALL.calls=N or CALL.tokens=N")
        budgets.setdefault(call, {})[what] = value
    return budgets


def _security(tls_ca: Path | None, bearer_token_file: Path | None) -> Security:
    if tls_ca is not None and not tls_ca.is_file():
        raise RunError(f"--tls-ca {tls_ca}: no such file")
    token = None
    if bearer_token_file is not None:
        try:
            token = bearer_token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise RunError(f"--bearer-token-file {bearer_token_file}: cannot be read: {error}") from error
        if not token or not (token.isascii() and token.isprintable()):
            raise RunError(f"--bearer-token-file {bearer_token_file}: expected one line of printable ASCII")
    return Security(tls_ca=tls_ca, bearer_token=token)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
