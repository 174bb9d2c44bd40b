"""Parses the engine options of the command line; each error is one clear line."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from memarena_masim.engines.connection import EndpointConfig
from memarena_masim.errors import MasimError

ENGINES = ("offline", "llm")


@dataclass(frozen=True, slots=True)
class EngineFlags:
    """The flags as the user typed them; None for a flag without a value."""

    engine: str = "offline"
    endpoint: str | None = None
    model: str | None = None
    api_key_env: str | None = None
    concurrency: int | None = None
    temperature: float | None = None
    timeout_s: float | None = None

    def connection(self) -> EndpointConfig | None:
        """Return the endpoint of ``--engine llm``; None for ``--engine offline``. MasimError names the wrong flag."""
        if self.engine not in ENGINES:
            raise MasimError(f"--engine {self.engine}: one of {', '.join(ENGINES)} is expected")
        if self.engine == "llm":
            return _check_llm_options(self)
        # all flags but ``engine`` itself belong to the engine llm
        for field in dataclasses.fields(self)[1:]:
            if getattr(self, field.name) is not None:
                raise MasimError(f"--{field.name.replace('_', '-')}: only --engine llm takes it")
        return None


def _check_llm_options(flags: EngineFlags) -> EndpointConfig:
    """Return the endpoint that the flags describe. MasimError names the first flag that is missing or wrong."""
    if flags.endpoint is None:
        raise MasimError("--endpoint: missing; --engine llm needs the URL of an OpenAI-compatible API (http://…/v1)")
    url = urlsplit(flags.endpoint)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise MasimError(f"--endpoint {flags.endpoint}: a URL like http://host:port/v1 is expected")
    if not flags.model:
        raise MasimError("--model: missing; --engine llm needs the name that the endpoint knows its model by")
    defaults = EndpointConfig(flags.endpoint, flags.model)
    config = EndpointConfig(
        url=flags.endpoint,
        model=flags.model,
        api_key=_key(flags.api_key_env),
        concurrency=defaults.concurrency if flags.concurrency is None else flags.concurrency,
        temperature=defaults.temperature if flags.temperature is None else flags.temperature,
        timeout_s=defaults.timeout_s if flags.timeout_s is None else flags.timeout_s,
    )
    if config.concurrency < 1:
        raise MasimError(f"--concurrency {config.concurrency}: 1 or more is expected")
    if not 0 <= config.temperature <= 2:
        raise MasimError(f"--temperature {config.temperature:g}: 0 to 2 is expected")
    if not config.timeout_s > 0:
        raise MasimError(f"--timeout-s {config.timeout_s:g}: seconds above 0 are expected")
    return config


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise MasimError(f"--api-key-env {variable}: the variable is not set, or empty")
    return key
