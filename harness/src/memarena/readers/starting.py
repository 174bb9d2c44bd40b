"""Starts a reader from its name, as a child process, or connects to a server at a URL."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from memarena_dataset.nearest_names import nearest
from pydantic import JsonValue

from memarena.gateway import Upstream
from memarena.log.records import ReaderRef, ResultClass
from memarena.processes import STARTS_AFTER_KILL, GuardedProcess, ProcessError, python_module
from memarena.readers import embedded, extractive, remote
from memarena.readers.embedded_server import WAIT_POLICY
from memarena.readers.request_settings import RequestSettings
from memarena.readers.sglang import start_sglang
from memarena.readers.sglang_settings import SglangSettings
from memarena.readers.types import ReaderError, RunningReader

API_KEY_VARIABLE = "MEMARENA_READER_API_KEY"
START_TIMEOUT_S = 180.0
SGLANG = "sglang:"
"""Prefix of a reader's name: start SGLang with the model named after it."""

LLAMACPP = "llamacpp:"
"""Prefix of a reader's name: start llama.cpp's server with the GGUF file named after it."""

_AS_THEY_ARE = RequestSettings()
_POLL_S = 0.02
_LLAMACPP_SERVER = Path(__file__).with_name("embedded_server.py")
_COLD: Mapping[str, JsonValue] = {"cache_prompt": False}
"""By default llama.cpp reuses the prefix of the previous prompt, which a cold TTFT must not do."""


def start_reader(
    spec: str,
    *,
    work_dir: Path,
    model: str | None = None,
    api_key: str | None = None,
    window_tokens: int | None = None,
    threads: int | None = None,
    no_system_role: bool | None = None,
    sglang: SglangSettings | None = None,
    program: Sequence[str] = (sys.executable,),
    request: RequestSettings = _AS_THEY_ARE,
    note: remote.Note = lambda _: None,
) -> RunningReader:
    """Start or connect to a reader.

    ``spec`` is ``embedded``, ``extractive``, ``sglang:MODEL``, ``llamacpp:FILE.gguf`` or a URL. ``work_dir`` takes the
    log and the address file of a reader that is started. ``model`` and ``api_key`` (default: the environment's
    MEMARENA_READER_API_KEY) are for URLs, as is ``no_system_role`` where the server does not say whether its chat
    template takes a system message; ``threads`` (default: all CPUs) is for ``embedded`` and ``llamacpp:``, whose server
    the Python of ``program`` starts. ``request`` changes the requests to any reader; ``note`` takes warnings and
    progress.

    Raises :class:`ReaderError`, in one line, if the reader is not installed, does not come up or cannot be reached.
    """
    if window_tokens is not None and window_tokens < 1:
        raise ReaderError(f"reader {spec}: the window must have at least 1 token, not {window_tokens}")
    reader = _started(spec, work_dir, model, api_key, window_tokens, threads, no_system_role, sglang, program, note)
    return dataclasses.replace(reader, upstream=request.applied(reader.upstream))


def _started(
    spec: str,
    work_dir: Path,
    model: str | None,
    api_key: str | None,
    window_tokens: int | None,
    threads: int | None,
    no_system_role: bool | None,
    sglang: SglangSettings | None,
    program: Sequence[str],
    note: remote.Note,
) -> RunningReader:
    if spec.startswith(("http://", "https://")):
        key = api_key or os.environ.get(API_KEY_VARIABLE) or None
        return _connect(spec, model, key, window_tokens, no_system_role, note)
    if model is not None:
        raise ReaderError(f"reader {spec}: a model can only be named for a URL")
    if no_system_role and not spec.startswith((SGLANG, LLAMACPP)):
        raise ReaderError(f"reader {spec}: its chat template is known; no_system_role is for a URL")
    if spec.startswith(SGLANG):
        settings = sglang or SglangSettings(
            spec.removeprefix(SGLANG),
            context_tokens=window_tokens or remote.DEFAULT_WINDOW_TOKENS,
        )
        return start_sglang(settings, work_dir=work_dir)
    if spec.startswith(LLAMACPP):
        return _start_llamacpp(planned_llamacpp(spec, window_tokens, threads), work_dir, no_system_role, program)
    if spec == "embedded":
        return _start_embedded(work_dir, window_tokens, threads)
    if spec == "extractive":
        return _start_extractive(work_dir, window_tokens)
    raise ReaderError(
        f"unknown reader {spec!r}: expected embedded, extractive, sglang:MODEL, llamacpp:FILE.gguf or an http(s) URL"
        + nearest(spec.partition(":")[0], ("embedded", "extractive", "sglang", "llamacpp"))
    )


def _start_embedded(work_dir: Path, window_tokens: int | None, threads: int | None) -> RunningReader:
    weights = embedded.find_weights()
    window = window_tokens or embedded.MODEL_WINDOW_TOKENS
    if window > embedded.MODEL_WINDOW_TOKENS:
        raise ReaderError(f"reader embedded: a window of {window} tokens is above {embedded.MODEL_WINDOW_TOKENS}")
    cpus = threads or embedded.usable_cpus()
    arguments = _llamacpp_arguments(weights.path, weights.model, window, cpus)
    process, base_url = start_child("embedded", _LLAMACPP_SERVER, work_dir, arguments)
    ref = ReaderRef(
        name="embedded",
        kind="embedded",
        model=weights.model,
        base_url=base_url,
        context_window_tokens=window,
        counts_tokens=True,
        result_class="cold_prefill",
        details={
            "weights_sha256": weights.sha256(),
            "weights_distribution": f"{embedded.WEIGHTS_DISTRIBUTION} {weights.distribution_version}",
            "engine": f"{embedded.ENGINE_DISTRIBUTION} {weights.engine_version}",
            **_llamacpp_settings(window, cpus),
        },
    )
    upstream = Upstream(
        model="embedded",
        base_url=base_url,
        upstream_model=weights.model,
        context_window_tokens=window,
        tokenizer="llama.cpp",
        extra_body=_COLD,
        identity=ref.details["weights_sha256"],
    )
    return RunningReader(ref, upstream, process)


def _llamacpp_arguments(weights: Path, model: str, window: int, cpus: int) -> list[str]:
    flags = {"--window-tokens": str(window), "--threads": str(cpus), "--model": model}
    return [*(part for flag in flags.items() for part in flag), "--weights", str(weights.absolute())]


def _llamacpp_settings(window: int, cpus: int) -> dict[str, str]:
    """Return the settings with which the server is started, for the manifest."""
    return {
        "n_ctx": str(window),
        "n_parallel": "1",
        "n_gpu_layers": "0",
        "n_threads": str(cpus),
        "omp_wait_policy": WAIT_POLICY,
        "cache_ram_mib": "0",
        "cache_prompt": "false",
    }


def planned_llamacpp(spec: str, window_tokens: int | None, threads: int | None = None) -> RunningReader:
    """Return the reader ``llamacpp:FILE`` as known before its server starts: its upstream has no address yet.

    Raises :class:`ReaderError` if the file cannot be read.
    """
    path = Path(spec.removeprefix(LLAMACPP))
    if path.suffix != ".gguf" or not path.is_file():
        raise ReaderError(f"reader {spec}: expected the path of a .gguf file that is there")
    window, cpus = window_tokens or remote.DEFAULT_WINDOW_TOKENS, threads or embedded.usable_cpus()
    sha256 = embedded.sha256_of(path.absolute())
    ref = ReaderRef(
        name=path.stem,
        kind="llamacpp",
        model=path.stem,
        context_window_tokens=window,
        counts_tokens=True,
        result_class="cold_prefill",
        details={"weights_sha256": sha256, "weights": str(path.absolute()), **_llamacpp_settings(window, cpus)},
    )
    upstream = Upstream(
        model=path.stem,
        base_url="",
        upstream_model=path.stem,
        context_window_tokens=window,
        tokenizer="llama.cpp",
        extra_body=_COLD,
        identity=sha256,
    )
    return RunningReader(ref, upstream)


def _start_llamacpp(
    planned: RunningReader, work_dir: Path, no_system_role: bool | None, program: Sequence[str]
) -> RunningReader:
    ref, details = planned.ref, planned.ref.details
    arguments = _llamacpp_arguments(
        Path(details["weights"]), ref.model, ref.context_window_tokens, int(details["n_threads"])
    )
    process, base_url = start_child(f"llamacpp-{ref.name}", _LLAMACPP_SERVER, work_dir, arguments, program)
    server = remote.identify(base_url, None, ref.model)
    without = bool(server.no_system_role if no_system_role is None else no_system_role)
    reported = {"base_url": base_url, "no_system_role": without, "details": {**server.details, **details}}
    upstream = dataclasses.replace(planned.upstream, base_url=base_url, no_system_role=without)
    return RunningReader(ref.model_copy(update=reported), upstream, process)


def _start_extractive(work_dir: Path, window_tokens: int | None) -> RunningReader:
    window = window_tokens or extractive.DEFAULT_WINDOW_TOKENS
    process, base_url = start_child(
        "extractive", "memarena.readers.extractive_server", work_dir, ["--window-tokens", str(window)]
    )
    ref = ReaderRef(
        name="extractive",
        kind="extractive",
        model=extractive.MODEL,
        base_url=base_url,
        context_window_tokens=window,
        counts_tokens=True,
        is_real_reader=False,
        details={"token_counting": "UTF-8 bytes / 4"},
    )
    upstream = Upstream(
        model="extractive",
        base_url=base_url,
        upstream_model=extractive.MODEL,
        context_window_tokens=window,
        tokenizer="bytes",
    )
    return RunningReader(ref, upstream, process)


def start_child(
    name: str, server: str | Path, work_dir: Path, arguments: Sequence[str], program: Sequence[str] = (sys.executable,)
) -> tuple[GuardedProcess, str]:
    """Start one of the harness's servers as a child; return the process and the API's base URL when it listens.

    ``server``: a module, or the file of a program that the Python of ``program`` runs.
    """
    work_dir.mkdir(parents=True, exist_ok=True)
    address_file = work_dir / f"reader-{name}.address"
    # By its name alone: every process of a machine can read the arguments of this one, and the folder is a run's.
    flags = ["--address-file", address_file.name, *arguments]
    # -P: the folder of the file holds modules that it must not import.
    command = python_module(server, *flags) if isinstance(server, str) else [*program, "-P", str(server), *flags]
    for starts_left in reversed(range(STARTS_AFTER_KILL + 1)):
        address_file.unlink(missing_ok=True)
        try:
            process = GuardedProcess.start(command, log_path=work_dir / f"reader-{name}.log", cwd=work_dir)
        except ProcessError as error:
            raise ReaderError(f"reader {name}: {error}") from error
        try:
            return process, f"http://{_await_address(name, process, address_file)}/v1"
        except BaseException as error:
            process.stop()
            if not (starts_left and isinstance(error, ReaderError) and process.killed()):
                raise
            process.note("killed while it started; started again")
    raise AssertionError("the last start returns or raises")


def _await_address(name: str, process: GuardedProcess, address_file: Path) -> str:
    """Wait until a child has written its address, ``HOST:PORT``, and return it."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while not (address := _address_in(address_file)):
        if (code := process.poll()) is not None:
            log_tail = process.log_tail(3) or "nothing"
            log_tail += "; memarena readers install llamacpp" if "No module named 'xllamacpp'" in log_tail else ""
            raise ReaderError(f"reader {name}: it ended while starting (exit code {code}); its log says: {log_tail}")
        if time.monotonic() > deadline:
            raise ReaderError(f"reader {name}: it was not ready after {START_TIMEOUT_S:g} s")
        time.sleep(_POLL_S)
    return address


def _address_in(address_file: Path) -> str:
    """Return the address in a child's file; empty until the child has written it."""
    return address_file.read_text(encoding="utf-8").strip() if address_file.exists() else ""


def _connect(
    spec: str,
    model: str | None,
    api_key: str | None,
    window_tokens: int | None,
    no_system_role: bool | None,
    note: remote.Note,
) -> RunningReader:
    base_url = remote.api_url(spec)
    choice = remote.choose_model(base_url, api_key, model, note)
    chosen = choice.name
    remote.wait_until_loaded(base_url, api_key, note)
    server = remote.identify(base_url, api_key, chosen)
    served = server.window_tokens or choice.window_tokens
    window = window_tokens or served or remote.DEFAULT_WINDOW_TOKENS
    warnings = list(choice.warnings)
    if window_tokens and served and window_tokens > served:
        warnings.append(f"reader {base_url}: --reader-window {window_tokens} is above the server's own {served}")
    for warning in warnings:
        note(f"warning: {warning}")
    upstream = Upstream(
        model=chosen,
        base_url=base_url,
        upstream_model=chosen,
        api_key=api_key,
        context_window_tokens=window,
        no_system_role=bool(server.no_system_role if no_system_role is None else no_system_role),
        tokenizer=server.kind if server.kind in {"llama.cpp", "sglang"} else "none",
        extra_body=_COLD if server.kind == "llama.cpp" else {},
    )
    upstream = dataclasses.replace(
        upstream, tokenizer=remote.usable_tokenizer(upstream), identity=json.dumps(server.details, sort_keys=True)
    )
    source = "given" if window_tokens else "server" if served else "default"
    ref = ReaderRef(
        name=chosen,
        kind="url",
        model=chosen,
        base_url=base_url,
        context_window_tokens=window,
        no_system_role=upstream.no_system_role,
        counts_tokens=upstream.counts_tokens,
        result_class=_result_class(server),
        details={
            "server": server.kind,
            "window_from": source,
            "tokenizer": upstream.tokenizer,
            **({"window_of_server": str(served)} if served else {}),
            **({"warnings": "; ".join(warnings)} if warnings else {}),
            **server.details,
        },
    )
    return RunningReader(ref, upstream)


def _result_class(server: remote.Server) -> ResultClass:
    """Return the result class of a server not started by the harness; llama.cpp is asked not to reuse prefixes."""
    if server.kind == "llama.cpp":
        return "cold_prefill"
    if server.kind == "sglang" and "disable_radix_cache" in server.details:
        return "cold_prefill" if server.details["disable_radix_cache"] == "True" else "warm_prefix"
    return "unknown"
