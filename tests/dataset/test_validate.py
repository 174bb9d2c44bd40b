"""Tests ``validate``: a clean data set has no findings, and each class of fault is detected by its check."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from memarena_dataset.checks import permission, structural, uniqueness
from memarena_dataset.checks.blind_words import auc_of_words, standard_error
from memarena_dataset.checks.findings import Finding
from memarena_dataset.checks.overlap import function_words
from memarena_dataset.checks.permission import auc_of_feature
from memarena_dataset.checks.world import World
from memarena_dataset.errors import DatasetError
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.validate import FULL, STRUCTURAL, Check, Profile, validate

from .mutations import MUTATIONS, OTHER_FEE, Spoil, fact, telling_pool


def found_by(check: Check, path: Path) -> list[Finding]:
    """Return the findings of one check, run alone."""
    with open_dataset(path, strict=False) as dataset:
        return list(check(World(dataset)))


@pytest.mark.parametrize("profile", list(Profile))
def test_the_example_is_clean(example: Path, profile: Profile) -> None:
    result = validate(example, profile)
    assert (result.errors, result.warnings, result.not_checked) == ((), (), ())
    assert result.valid


@pytest.mark.parametrize("check", STRUCTURAL + FULL, ids=lambda check: check.__name__)
def test_no_check_has_a_finding_in_the_example(example: Path, check: Check) -> None:
    assert found_by(check, example) == []


@pytest.mark.parametrize(
    ("check", "what", "location", "spoil"),
    MUTATIONS,
    ids=[f"{check.__name__}: {what}" for check, what, _, _ in MUTATIONS],
)
def test_each_fault_is_detected_by_its_check(
    spoilable: Any, check: Check, what: str, location: str, spoil: Spoil
) -> None:
    spoil(spoilable)
    findings = found_by(check, spoilable.path)
    assert findings, what
    assert any(location in str(finding.problem) for finding in findings), [str(finding.problem) for finding in findings]
    result = validate(spoilable.path, Profile.FULL)
    assert set(findings) <= set(result.errors + result.warnings)


def test_every_check_has_a_fault_that_it_detects() -> None:
    assert {check for check, *_ in MUTATIONS} == set(STRUCTURAL + FULL)


def test_structural_checks_run_in_both_profiles_and_full_ones_in_one(spoilable: Any) -> None:
    spoilable.question("qa_0001", lambda row: row["ground_truth"].update(values=[]))
    assert validate(spoilable.path, Profile.STRUCTURAL).valid
    assert not validate(spoilable.path, Profile.FULL).valid


# ------------------------------------------------------------------ what is no fault


def test_a_later_statement_that_replaces_an_earlier_one_is_no_contradiction(spoilable: Any) -> None:
    OTHER_FEE(spoilable)
    spoilable.edit("facts.jsonl", "f_fee", lambda row: row.update(supersedes="f_other"))
    assert found_by(uniqueness.rival_value, spoilable.path) == []


def test_a_statement_of_another_scope_or_namespace_is_no_contradiction(spoilable: Any) -> None:
    fact("f_other", "sess_0016", "sess_0016_t01", scope="another commission")(spoilable)
    fact("f_other", "sess_0002", "sess_0002_t01")(spoilable)
    assert found_by(uniqueness.rival_value, spoilable.path) == []


def test_the_same_value_in_another_form_is_no_contradiction(spoilable: Any) -> None:
    fact("f_other", "sess_0016", "sess_0016_t01", value=640)(spoilable)
    fact("f_more", "sess_0008", "sess_0008_t01", value={"type": "amount", "amount": 640.0})(spoilable)
    assert found_by(uniqueness.rival_value, spoilable.path) == []


def test_unchecked_properties_are_listed(spoilable: Any) -> None:
    (spoilable.path / "facts.jsonl").unlink()
    spoilable.question("qa_0001", lambda row: row["metadata"].pop("fact_id"))
    result = validate(spoilable.path, Profile.FULL)
    assert result.valid
    assert "facts.jsonl is missing" in result.not_checked[0]
    assert "1 questions: metadata.fact_id is missing" in result.not_checked[1]


def test_a_folder_without_a_corpus_cannot_be_validated(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"corpus_sessions.jsonl is missing"):
        validate(tmp_path)


def test_a_permission_pool_is_fair_where_asker_and_action_are_crossed(spoilable: Any) -> None:
    telling_pool(spoilable)
    file = "eval_instances/d4_permission.jsonl"
    rows = spoilable.rows(file)
    for number, item in enumerate(rows):
        item["ground_truth"] = json.loads(json.dumps(item["ground_truth"]))
        action = "disclose" if number % 4 < 2 else "withhold"
        item["ground_truth"].update(expected_action=action, expected_disclosure=action == "disclose")
    spoilable.write_rows(file, rows)
    assert found_by(permission.blind_policy_wins, spoilable.path) == []


@pytest.mark.parametrize(
    ("values", "positive", "auc"),
    [
        ("aabb", [True, True, False, False], 1.0),
        ("abab", [True, True, False, False], 0.5),
        ("aaab", [True, True, False, False], 0.75),
        ("aaaa", [True, False, True, False], 0.5),
    ],
)
def test_auc_is_that_of_the_best_blind_predictor(values: str, positive: list[bool], auc: float) -> None:
    assert auc_of_feature(list(values), positive) == auc


def test_only_words_that_reveal_the_action_are_reported() -> None:
    """Only across groups: words that the items of one group share reveal nothing."""
    telling = [frozenset(("secret" if number % 2 else "open", f"topic{number % 7}")) for number in range(80)]
    blind = [frozenset((f"fact{number // 2}", f"topic{number % 7}")) for number in range(80)]
    action = [number % 2 == 1 for number in range(80)]
    pairs = [number // 2 for number in range(80)]
    assert auc_of_words(telling, pairs, action) == 1.0
    assert auc_of_words(blind, pairs, action) < 0.6


def test_an_auc_has_a_smaller_error_in_a_larger_pool() -> None:
    assert standard_error(0.6, 120, 80) == pytest.approx(0.0402, abs=1e-4)
    assert standard_error(0.6, 12, 8) > 3 * standard_error(0.6, 120, 80)


def test_function_words_come_from_their_file() -> None:
    assert {"the", "which", "about"} <= function_words()
    assert not any(word.startswith("#") for word in function_words())


def test_an_unknown_asker_is_a_fault_and_a_persona_or_no_asker_is_not(spoilable: Any) -> None:
    def faults() -> list[str]:
        return [finding.problem.field for finding in found_by(structural.questions, spoilable.path)]

    spoilable.question("perm_0001", lambda row: row.update(asker_agent_id=None))
    assert faults() == []
    spoilable.question("perm_0001", lambda row: row.update(asker_agent_id="nobody_here"))
    assert faults() == ["asker_agent_id"]
    personas = spoilable.rows("agents_personas.jsonl")
    spoilable.write_rows("agents_personas.jsonl", [*personas, {**personas[0], "agent_id": "nobody_here"}])
    assert faults() == []


def test_a_file_instead_of_the_folder_of_questions_is_named(spoilable: Any) -> None:
    shutil.rmtree(spoilable.path / "eval_instances")
    (spoilable.path / "eval_instances").touch()
    with pytest.raises(DatasetError, match="eval_instances: is no folder"):
        validate(spoilable.path)
