"""Tests which servers of a cell use CPU time that the harness cannot tell from other load on the machine."""

from __future__ import annotations

import pytest
from memarena.execution.backends.manifests import choose_backend
from memarena.execution.outside_servers import outside_servers
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.model_config import HelperConfig, ReaderConfig


@pytest.mark.parametrize(
    ("backend", "reader", "embedder", "expected"),
    [
        ("bm25", "extractive", None, ""),
        ("bm25", "extractive", "embedded", ""),
        ("bm25", "https://8.8.8.8/v1", None, ""),
        ("bm25", "http://user:secret@127.0.0.1:8000/v1", None, "a model runs at 127.0.0.1:8000"),
        ("bm25", "http://no-such-name.invalid/v1", None, "a model runs at no-such-name.invalid"),
        ("bm25", "extractive", "http://10.0.0.7:1/v1", "a model runs at 10.0.0.7:1"),
        ("mine=[::1]:7000", "extractive", None, "the memory runs at [::1]:7000"),
        ("mine=image:mine:1", "extractive", None, "the memory runs in a container"),
    ],
)
def test_only_what_the_run_started_or_what_is_far_away_is_told_apart(
    backend: str, reader: str, embedder: str | None, expected: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    config = RunConfig(
        dataset=tmp_path_factory.mktemp("data"),
        backends=(backend,),
        readers=(ReaderConfig(spec=reader),),
        embedder=HelperConfig(spec=embedder) if embedder else None,
    )
    assert outside_servers(choose_backend(backend), config.readers[0], config) == expected
