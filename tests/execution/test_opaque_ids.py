"""Tests opaque ids: they reveal nothing, differ between namespaces, and can be translated back.

With real ids a backend could recognise a person in two namespaces, or read a question's family from its id.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from memarena.execution.cells.opaque_ids import ID_LENGTH, IdKind, NamespaceIds, opaque_id

KEY = bytes(range(32))
names = st.text(min_size=1, max_size=40)


@given(names, names)
def test_ids_are_deterministic_for_a_key_and_can_be_translated_back(cell: str, real: str) -> None:
    first, second = (NamespaceIds(KEY, cell, "ego", 0) for _ in range(2))
    token = first.make(IdKind.PARTICIPANT, real)
    assert token == second.make(IdKind.PARTICIPANT, real)
    assert len(token) == ID_LENGTH
    assert token.isascii()
    assert first.real(IdKind.PARTICIPANT, token) == real
    assert first.real(IdKind.SESSION, token) is None


@given(names)
def test_another_namespace_attempt_key_or_kind_gives_another_id(real: str) -> None:
    base = NamespaceIds(KEY, "cell", "ego", 0)
    others = [
        NamespaceIds(KEY, "cell", "ego", 1),
        NamespaceIds(KEY, "cell", "other", 0),
        NamespaceIds(KEY, "other", "ego", 0),
        NamespaceIds(bytes(32), "cell", "ego", 0),
    ]
    tokens = {ids.make(IdKind.PARTICIPANT, real) for ids in (base, *others)} | {base.make(IdKind.SESSION, real)}
    assert len(tokens) == len(others) + 2


@given(st.lists(names, min_size=2, max_size=3, unique=True))
def test_parts_of_an_id_are_separated_unambiguously(parts: list[str]) -> None:
    assert opaque_id(KEY, *parts) != opaque_id(KEY, "".join(parts))


def test_an_id_that_was_never_issued_is_unknown() -> None:
    assert NamespaceIds(KEY, "cell", "ego", 0).real(IdKind.TURN, "x" * ID_LENGTH) is None
