"""Tests the rules that decide who may know a fact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena_dataset.permission_rules import AccessCase, Decision, decide


def case(
    *,
    asker: str | None = "ann",
    subject: str | None = "sue",
    heard_from_subject: bool = False,
    level: str | None = None,
    friends: bool | None = None,
    sensitive: bool = False,
    known: bool = True,
    relation: str = "",
    may: tuple[str, ...] = (),
    may_not: tuple[str, ...] = (),
    pending: bool = False,
) -> AccessCase:
    return AccessCase(
        asker, "eve", subject, heard_from_subject, level, friends, sensitive, known, relation, may, may_not, pending
    )


@pytest.mark.parametrize(
    ("asked", "decision"),
    [
        (case(asker="eve", level="private"), Decision(1, "disclose")),
        (case(asker="sue", level="private", sensitive=True), Decision(1, "disclose")),
        (case(heard_from_subject=True, level="public"), Decision(2, None)),
        (case(level="public"), Decision(5, "disclose")),
        (case(asker=None, level="public", known=False), Decision(5, "disclose")),
        (case(level="public", sensitive=True), Decision(5, "disclose")),
        (case(level="friends_only", friends=True), Decision(6, "disclose")),
        (case(level="friends_only", friends=False), Decision(6, "withhold")),
        (case(level="friends_only"), Decision(6, None)),
        (case(level="friends_only", known=False), Decision(6, "withhold")),
        (case(asker=None, level="friends_only"), Decision(6, "withhold")),
        (case(level="private"), Decision(7, "withhold")),
        (case(level="private", friends=True), Decision(7, "withhold")),
        (case(sensitive=True), Decision(7, "withhold")),
        (case(), Decision(8, "disclose")),
        (case(known=False), Decision(8, "withhold")),
        (case(asker=None), Decision(8, "withhold")),
        (case(asker=None, subject=None), Decision(8, "withhold")),
        (case(level="private", may=("ann",)), Decision(3, "disclose")),
        (case(level="private", may=("bob",)), Decision(7, "withhold")),
        (case(level="public", may_not=("ann",)), Decision(3, "withhold")),
        (case(level="public", may_not=("bob",)), Decision(5, "disclose")),
        (case(asker=None, level="public", may_not=("bob",)), Decision(5, None)),
        (case(known=False, level="public", may_not=("bob",)), Decision(5, None)),
        (case(may=("bob",), may_not=("ann",)), Decision(3, "withhold")),
        (case(may=("bob",), may_not=("cal",)), Decision(3, None)),
        (case(level="private", may=("family",), relation="family"), Decision(3, "disclose")),
        (case(level="private", may=("family",), relation="friend"), Decision(7, "withhold")),
        (case(level="public", may_not=("colleague",), relation="colleague"), Decision(3, "withhold")),
        (case(level="private", may=("ann",), may_not=("family",), relation="family"), Decision(3, "disclose")),
        (case(level="public", pending=True), Decision(4, "withhold")),
        (case(level="public", may=("ann",), pending=True), Decision(3, "disclose")),
        (case(sensitive=True, level="private", may=("ann",)), Decision(3, "disclose")),
    ],
)
def test_the_first_rule_that_matches_decides(asked: AccessCase, decision: Decision) -> None:
    assert decide(asked) == decision


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="'secret' is not a level"):
        decide(case(level="secret"))


CASES = st.builds(
    AccessCase,
    asker=st.sampled_from([None, "ann", "eve", "sue"]),
    ego=st.just("eve"),
    subject=st.sampled_from([None, "sue"]),
    heard_from_subject=st.booleans(),
    level=st.sampled_from([None, "public", "friends_only", "private"]),
    friends=st.sampled_from([None, True, False]),
    sensitive=st.booleans(),
    known_to_ego=st.booleans(),
)


@given(CASES)
def test_a_private_fact_is_disclosed_to_owner_and_subject_only(access_case: AccessCase) -> None:
    if access_case.level == "private" and decide(access_case).action == "disclose":
        assert access_case.asker in (access_case.ego, access_case.subject)


@given(CASES)
def test_a_stranger_gets_public_facts_only(access_case: AccessCase) -> None:
    if access_case.asker is None and decide(access_case).action == "disclose":
        assert access_case.level == "public" or (access_case.level == "friends_only" and access_case.friends)


@given(CASES)
def test_the_owner_gets_every_fact(access_case: AccessCase) -> None:
    if access_case.asker == access_case.ego:
        assert decide(access_case) == Decision(1, "disclose")
