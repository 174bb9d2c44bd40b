"""Defines how SGLang is started for a single stream: its flags, and which settings are read back from the server."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from memarena.log.records import ResultClass
from memarena.readers.errors import ReaderError


@dataclass(frozen=True, slots=True)
class SglangSettings:
    """Settings of one server. ``image`` is a container image by digest; None: start it with ``program``, a Python.

    ``mem_fraction`` is the share of memory for weights and cache: 0.85 alone, 0.5 together with an embedding server.
    """

    model_path: str
    result_class: ResultClass = "cold_prefill"
    image: str | None = None
    program: tuple[str, ...] = (sys.executable,)
    context_tokens: int = 16_384
    mem_fraction: float = 0.85
    attention_backend: str = "flashinfer"
    seed: int = 0
    served_name: str | None = None
    no_system_role: bool = False
    extra_flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise :class:`ReaderError` for invalid settings."""
        if not self.model_path:
            raise ReaderError("reader sglang: expected sglang:MODEL, a folder or a model's name")
        if self.result_class not in ("cold_prefill", "warm_prefix"):
            raise ReaderError(f"reader sglang: result class {self.result_class}: expected cold_prefill or warm_prefix")
        if not 0 < self.mem_fraction < 1:
            raise ReaderError(f"reader sglang: mem_fraction {self.mem_fraction}: expected a share between 0 and 1")
        if self.image is not None and "@sha256:" not in self.image:
            raise ReaderError(f"reader sglang: image {self.image}: expected it by digest (NAME@sha256:…): tags move")


def launch_flags(settings: SglangSettings, *, port: int) -> list[str]:
    """Return arguments of ``sglang.launch_server``: one request at a time, tokens sent singly, cached ones reported."""
    flags = {
        "--model-path": settings.model_path,
        "--host": "127.0.0.1",
        "--port": str(port),
        "--max-running-requests": "1",
        "--context-length": str(settings.context_tokens),
        "--mem-fraction-static": f"{settings.mem_fraction:g}",
        "--attention-backend": settings.attention_backend,
        "--stream-interval": "1",
        "--random-seed": str(settings.seed),
    }
    if settings.served_name:
        flags["--served-model-name"] = settings.served_name
    switches = ["--enable-cache-report", "--enable-metrics"]
    if settings.result_class == "cold_prefill":
        switches.append("--disable-radix-cache")
    return [*(part for flag in flags.items() for part in flag), *switches, *settings.extra_flags]


def wanted_settings(settings: SglangSettings) -> dict[str, str]:
    """Return the settings that the server must report, by its own names."""
    return {
        "model_path": settings.model_path,
        "max_running_requests": "1",
        "context_length": str(settings.context_tokens),
        "mem_fraction_static": f"{settings.mem_fraction:g}",
        "attention_backend": settings.attention_backend,
        "stream_interval": "1",
        "random_seed": str(settings.seed),
        "enable_cache_report": "True",
        "disable_radix_cache": str(settings.result_class == "cold_prefill"),
    }
