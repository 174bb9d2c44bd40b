"""Tests planning/parsing.py: defaults of a run's configuration, and errors that name the field."""

from __future__ import annotations

import pytest
from memarena.execution.errors import RunError
from memarena.execution.planning.parsing import parse_config

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
        ({"max_answer_tokens": 2**32}, "max_answer_tokens"),
        ({"max_context_tokens": 99999999999999999999}, "max_context_tokens"),
        ({"max_items": 2**32}, "max_items"),
        ({"readers": [{"spec": "extractive", "window_tokens": 2**32}]}, "readers.0.window_tokens"),
        ({"deadlines_s": {"search": 1e10}}, "deadlines_s.search"),
        ({"gateway_host": ""}, "gateway_host"),
        ({"colour": "blue"}, "colour"),
    ],
)
def test_an_invalid_value_is_refused_with_the_name_of_its_field(change: dict[str, object], field: str) -> None:
    with pytest.raises(RunError, match=f"here: {field}: "):
        parse_config({**GOOD, **change}, "here")


def test_a_gateway_on_all_addresses_needs_a_url() -> None:
    base = {"dataset": "d", "backends": ["bm25"], "readers": [{"spec": "extractive"}], "gateway_host": "0.0.0.0"}
    with pytest.raises(RunError, match="give gateway_url too"):
        parse_config(base, "here")
    assert parse_config({**base, "gateway_url": "http://harness:8100/v1"}, "here").gateway_url


@pytest.mark.parametrize("name", ["BM25_EMBEDDING_API_KEY", "token", "MY_SECRET"])
def test_a_secret_as_a_setting_is_refused_and_not_printed(name: str) -> None:
    with pytest.raises(RunError, match="export a secret in the environment") as refused:
        parse_config({**GOOD, "settings": {"bm25": {name: "sesame"}}}, "here")
    assert "sesame" not in str(refused.value)


@pytest.mark.parametrize("option", ["identity", "policy"])
def test_options_of_the_backends_own_answer_are_refused_with_central_reading(option: str) -> None:
    config = {**GOOD, "options": {"bm25": {option: "none"}}}
    assert parse_config(config, "here").options == {"bm25": {option: "none"}}
    with pytest.raises(
        RunError, match=f"^here: options.bm25.{option}: acts in a backend's own Answer, not in central_reading$"
    ):
        parse_config({**config, "central_reading": True}, "here")


def test_inferred_d6_rules_need_central_reading() -> None:
    assert parse_config({**GOOD, "d6_rules": "inferred", "central_reading": True}, "here").d6_rules == "inferred"
    with pytest.raises(RunError, match=r"^here: d6_rules: inferred goes with central_reading: "):
        parse_config({**GOOD, "d6_rules": "inferred"}, "here")
