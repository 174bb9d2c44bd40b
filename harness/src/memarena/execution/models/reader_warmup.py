"""Prepares a reader before anything is timed: probe, check of the chat template, warm-up.

A reader that answers nothing, cuts prompts or uses another template would otherwise show only in the results.
"""

from __future__ import annotations

from collections.abc import Callable

from memarena_answering import ReadingPlan

from memarena.execution.errors import InfraError
from memarena.execution.planning.config import SEED_LABELS, RunConfig
from memarena.execution.planning.model_config import ReaderConfig
from memarena.gateway import Gateway
from memarena.log.records import ReaderProbed
from memarena.readers.checking import check_reader
from memarena.readers.errors import ReaderError
from memarena.readers.golden import count_template, golden_counts, template_fault
from memarena.readers.types import RunningReader
from memarena.readers.warming import warm_up

_MARGIN_TOKENS = 512
"""Tokens left free in a reader's window, as filler words are counted by bytes, and templates add tokens."""


def prepare_reader(
    reader: RunningReader,
    reader_config: ReaderConfig,
    config: RunConfig,
    gateway: Gateway,
    append: Callable[..., None],
    *,
    after_manifest: bool = False,
) -> None:
    """Probe a reader, compare the token counts of its template with golden ones if there are any, and warm it up.

    ``after_manifest``: it started after the manifest was written, so its description is logged here.
    Raises InfraError, with the result in the log, if the reader cannot be timed.
    """
    longest = longest_prompt_tokens(reader, config)
    temperature, seed = SEED_LABELS[config.seeds[0]]
    sampling = ReadingPlan(reader.upstream.model, 1, temperature, seed, thinking=config.thinking)
    result = check_reader(reader, gateway, longest, sampling)
    append(result.model_copy(update={"started": reader.ref}) if after_manifest else result)
    if not result.ok:
        raise InfraError(f"reader {reader.ref.name}: the probe failed: {result.message}")
    _check_template(reader, reader_config, gateway, append)
    if config.warm_up:
        try:
            warm_up(reader, gateway, config.warm_up, longest)
        except ReaderError as error:
            raise InfraError(str(error)) from error


def longest_prompt_tokens(reader: RunningReader, config: RunConfig) -> int:
    """Return roughly the tokens of a run's longest prompt: its budget, or the reader's window less the reply."""
    room = reader.ref.context_window_tokens - config.max_answer_tokens - config.reasoning_tokens - _MARGIN_TOKENS
    return max(1, min(config.max_context_tokens, room))


def _check_template(reader: RunningReader, config: ReaderConfig, gateway: Gateway, append: Callable[..., None]) -> None:
    golden = golden_counts(reader, config.golden_prompt_tokens)
    if golden is None:
        return
    counts = count_template(reader, gateway)
    fault = counts if isinstance(counts, str) else template_fault(counts, golden)
    token_counts = {} if isinstance(counts, str) else counts
    append(ReaderProbed(reader=reader.ref.name, ok=not fault, message=fault or "", prompt_tokens=token_counts))
    if fault:
        raise InfraError(f"reader {reader.ref.name}: {fault}")
