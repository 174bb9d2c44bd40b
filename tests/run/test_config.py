"""A run's configuration says which field is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena.run.config import load_config, parse_config
from memarena.run.errors import RunError

GOOD = {"dataset": "data", "backends": ["bm25"], "readers": [{"spec": "extractive"}]}


def test_a_minimal_configuration_has_the_papers_defaults() -> None:
    config = parse_config(GOOD, "here")
    assert (config.protocol, config.seeds) == ("interleaved", ("s1",))
    assert (config.max_context_tokens, config.max_answer_tokens) == (8192, 400)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"backends": []}, "backends"),
        ({"backends": ["bm25", "bm25"]}, "backends"),
        ({"protocol": "backwards"}, "protocol"),
        ({"seeds": ["s9"]}, "seeds.0"),
        ({"max_answer_tokens": 0}, "max_answer_tokens"),
        ({"deadlines_s": {"search": -1}}, "deadlines_s.search"),
        ({"deadlines_s": {"serch": 1}}, "deadlines_s.serch"),
        ({"id_key": "short"}, "id_key"),
        ({"colour": "blue"}, "colour"),
    ],
)
def test_the_field_at_fault_is_named(change: dict[str, object], field: str) -> None:
    with pytest.raises(RunError, match=f"here: {field}: "):
        parse_config({**GOOD, **change}, "here")


def test_a_file_is_read_and_its_data_set_counts_from_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("dataset: worlds/a\nbackends: [bm25, vanilla]\nreaders:\n  - spec: embedded\n")
    config = load_config(path)
    assert config.dataset == tmp_path / "worlds" / "a"
    assert config.backends == ("bm25", "vanilla")


@pytest.mark.parametrize("text", ["[", "just words", "- a list", "dataset: x"])
def test_a_file_that_is_no_configuration_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(RunError) as caught:
        load_config(path)
    assert str(caught.value).startswith(str(path))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be read"):
        load_config(tmp_path / "none.yaml")


def test_a_gateway_on_all_addresses_needs_a_url() -> None:
    base = {"dataset": "d", "backends": ["bm25"], "readers": [{"spec": "extractive"}], "gateway_host": "0.0.0.0"}
    with pytest.raises(RunError, match="give gateway_url too"):
        parse_config(base, "here")
    assert parse_config({**base, "gateway_url": "http://harness:8100/v1"}, "here").gateway_url
