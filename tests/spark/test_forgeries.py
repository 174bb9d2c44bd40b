"""Tests bundles that were forged before they were signed: refused, or of a kind that docs/spark.md lists as undetected.

The forger has the program and the key: every figure is recomputed from the forged log, and the bundle is signed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from memarena.evaluation import load_facts, missing_verdicts
from memarena.log.records import AnyRecord, GatewayCall, Question, QuestionAsked, Verdict
from memarena.log.store import LogReader, read_records
from memarena_spark.bundle import layout
from memarena_spark.bundle.certify import certify
from memarena_spark.bundle.derived import derive, read_facts
from memarena_spark.bundle.verify import Trust, verify

from ..support.summed import put_body
from .conftest import EXAMPLE, Keys, Studied
from .test_verify import seal_again

Change = Callable[[AnyRecord, "Forger"], AnyRecord | None]


class Forger:
    """Changes the log of a bundle and makes the rest of the bundle consistent with it."""

    def __init__(self, bundle: Path) -> None:
        self.bundle = bundle
        self.folder = bundle / layout.LOG_FOLDER
        self.questions = {
            q.instance.instance_id: q for q in read_records(self.folder, "question") if isinstance(q, Question)
        }

    def gold(self, instance_id: str) -> str:
        """Return a string value of the question's gold, for use as a right answer."""
        gold = self.questions[instance_id].instance.gold.model_dump(exclude={"kind", "values"})
        words = [each[0] if isinstance(each, tuple) and each else each for each in gold.values()]
        return next(word for word in words if isinstance(word, str) and word)

    def forge(self, change: Change) -> None:
        """Apply ``change`` to every record, judge again, and recompute the derived files."""
        self._rewrite(change)
        fresh = {(v.cell_id, v.instance_id): v for v in missing_verdicts(load_facts(self.folder), anew=True)}
        if change not in (other_judge, other_reason):
            self._rewrite(lambda r, _: fresh[r.cell_id, r.instance_id] if isinstance(r, Verdict) else None)
        for name, content in derive(read_facts(self.bundle)).items():
            (self.bundle / name).write_bytes(content)

    def _rewrite(self, change: Change) -> None:
        with LogReader(self.folder) as log:
            numbers = [row.seq for row in log.rows()]
        for seq, record in zip(numbers, list(read_records(self.folder)), strict=True):
            changed = change(record, self)
            if changed is not None and changed != record:
                put_body(self.bundle / layout.LOG, seq, changed.model_dump_json())


def answered(record: AnyRecord, **changes: object) -> AnyRecord | None:
    """Return the attempt with changed fields of its answer; None for any other record."""
    if not isinstance(record, QuestionAsked) or record.answer is None:
        return None
    return record.model_copy(update={"answer": record.answer.model_copy(update=changes)})


def called(record: AnyRecord, **changes: object) -> AnyRecord | None:
    """Return the question's model call with changed fields; None for any other record."""
    return record.model_copy(update=changes) if isinstance(record, GatewayCall) and record.instance_id else None


def gold_answers(record: AnyRecord, forger: Forger) -> AnyRecord | None:
    if not isinstance(record, QuestionAsked):
        return None
    gold = forger.gold(record.instance_id)
    return answered(record, raw=gold, answer=gold, reason="", parse="text")


def other_answer(record: AnyRecord, forger: Forger) -> AnyRecord | None:
    return answered(record, answer=forger.gold(record.instance_id)) if isinstance(record, QuestionAsked) else None


def gold_everywhere(record: AnyRecord, forger: Forger) -> AnyRecord | None:
    """The answer is the gold, and so are the output of its model call and the output's hash."""
    if isinstance(record, GatewayCall) and record.instance_id:
        gold = forger.gold(record.instance_id)
        return called(record, output=gold, output_sha256=hashlib.sha256(gold.encode()).hexdigest(), completion_tokens=9)
    return gold_answers(record, forger)


def faster_first_tokens(record: AnyRecord, _: Forger) -> AnyRecord | None:
    """Times to the first token, in calls and answers, are divided by ten."""
    if isinstance(record, GatewayCall):
        moments = ("first_byte_ns", "first_content_ns")
        return called(record, **{name: (getattr(record, name) or 0) // 10 for name in moments})
    ttft_ns = record.answer.ttft_ns if isinstance(record, QuestionAsked) and record.answer is not None else None
    return answered(record, ttft_ns=(ttft_ns or 0) // 10)


def faster_answers(record: AnyRecord, _: Forger) -> AnyRecord | None:
    """The harness's times of Answer are divided by ten, those of its model calls are not."""
    if not isinstance(record, QuestionAsked) or record.answer is None:
        return None
    moments = {name: getattr(record.answer, name) for name in ("retrieved_ns", "first_delta_ns", "completed_ns")}
    return answered(record, **{name: None if time_ns is None else time_ns // 10 for name, time_ns in moments.items()})


def fewer_tokens(record: AnyRecord, _: Forger) -> AnyRecord | None:
    tokens = record.prompt_tokens if isinstance(record, GatewayCall) else None
    return called(record, prompt_tokens=(tokens or 0) // 10)


def fewer_reply_tokens(record: AnyRecord, _: Forger) -> AnyRecord | None:
    return called(record, completion_tokens=1)


def other_output(record: AnyRecord, _: Forger) -> AnyRecord | None:
    return called(record, output=record.output + " ") if isinstance(record, GatewayCall) else None


def no_calls(record: AnyRecord, _: Forger) -> AnyRecord | None:
    """The answer has no model calls and no time to the first token."""
    changed = answered(record, ttft_ns=None, model_calls=0)
    return changed.model_copy(update={"gateway_call_ids": ()}) if changed is not None else None


def other_items(record: AnyRecord, _: Forger) -> AnyRecord | None:
    """The retrieved items differ from those in the reader's prompt."""
    if not isinstance(record, QuestionAsked) or record.search is None:
        return None
    items = tuple(item.model_copy(update={"text": f"forged {item.text}"}) for item in record.search.items)
    return record.model_copy(update={"search": record.search.model_copy(update={"items": items})})


def with_sources(record: AnyRecord, sources: Callable[[str], tuple[str, ...]]) -> AnyRecord | None:
    if not isinstance(record, QuestionAsked) or record.search is None:
        return None
    items = tuple(item.model_copy(update={"session_ids": sources(record.instance_id)}) for item in record.search.items)
    return record.model_copy(update={"search": record.search.model_copy(update={"items": items})})


def evidence_as_source(record: AnyRecord, forger: Forger) -> AnyRecord | None:
    """Every item claims the sessions of the evidence as its sources."""
    return with_sources(record, lambda name: tuple(forger.questions[name].instance.evidence_session_ids))


def invented_source(record: AnyRecord, _: Forger) -> AnyRecord | None:
    return with_sources(record, lambda _name: ("session_of_nobody",))


def other_gold(record: AnyRecord, _: Forger) -> AnyRecord | None:
    """The question's gold is the answer of the log."""
    if not isinstance(record, Question) or record.instance.gold.kind != "text":
        return None
    gold = record.instance.gold.model_copy(update={"answers": ("as scripted",), "values": ()})
    return record.model_copy(update={"instance": record.instance.model_copy(update={"gold": gold})})


def other_judge(record: AnyRecord, _: Forger) -> AnyRecord | None:
    return record.model_copy(update={"judge_version": "0" * 64}) if isinstance(record, Verdict) else None


def other_reason(record: AnyRecord, _: Forger) -> AnyRecord | None:
    return record.model_copy(update={"reason": "the judge would not say so"}) if isinstance(record, Verdict) else None


REFUSED: dict[Change, str] = {
    gold_answers: "its text is the output of none of its model calls",
    other_answer: "the answer does not follow from the text that was read",
    faster_first_tokens: "after the time to the first token says",
    faster_answers: "its first TextDelta came before the first content of its model call",
    fewer_tokens: "tokens for a prompt of",
    fewer_reply_tokens: "1 tokens for a reply of",
    other_output: "its output is not the text of its SHA-256",
    no_calls: "its text is the output of none of its model calls",
    other_items: "the items stated as shown are not those in the prompt",
    other_judge: "by the judge 000000000000",
    other_reason: "its route or reason is not the judge's",
}
REFUSED_WITH_DATASET: dict[Change, str] = {
    other_gold: "question or gold is not that of the data set",
    invented_source: "an item names session session_of_nobody, no session of this life",
}
NOT_DETECTED = (gold_everywhere, evidence_as_source)
"""Forgeries that no other record of the log contradicts: docs/spark.md names both, and what detects them."""


@pytest.fixture(scope="module")
def honest(studied: Studied, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed bundle of a run over the example with a slow scripted reader."""
    bundle = tmp_path_factory.mktemp("honest") / "bundle"
    certify(studied.run, bundle, keys.key)
    verification = verify(bundle, Trust(allowed=keys.allowed), EXAMPLE)
    assert verification.faults == []
    assert any("gold, evidence and sources are those" in line for line in verification.held)
    return bundle


def forged(honest: Path, change: Change, keys: Keys, copy_of: Callable[[Path], Path]) -> Path:
    bundle = copy_of(honest)
    Forger(bundle).forge(change)
    seal_again(bundle, keys.key)
    return bundle


@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.__name__)
def test_a_log_whose_answers_do_not_follow_from_its_calls_is_refused(
    change: Change, honest: Path, keys: Keys, copy_of: Callable[[Path], Path]
) -> None:
    verification = verify(forged(honest, change, keys, copy_of), Trust(allowed=keys.allowed))
    assert {fault.file for fault in verification.faults} == {layout.LOG}
    assert any(REFUSED[change] in fault.message for fault in verification.faults), verification.faults


@pytest.mark.parametrize("change", REFUSED_WITH_DATASET, ids=lambda change: change.__name__)
def test_values_from_the_data_set_are_checked_with_it_and_listed_as_unchecked_without(
    change: Change, honest: Path, keys: Keys, copy_of: Callable[[Path], Path]
) -> None:
    bundle = forged(honest, change, keys, copy_of)
    alone = verify(bundle, Trust(allowed=keys.allowed))
    assert alone.faults == []
    assert any("--dataset DIR checks them" in line for line in alone.unchecked)
    verification = verify(bundle, Trust(allowed=keys.allowed), EXAMPLE)
    assert any(REFUSED_WITH_DATASET[change] in fault.message for fault in verification.faults), verification.faults


def test_another_data_set_is_named(honest: Path, keys: Keys, copy_of: Callable[[Path], Path]) -> None:
    other = copy_of(EXAMPLE)
    with (other / "locations.json").open("a", encoding="utf-8") as file:
        file.write("\n")
    (fault,) = verify(honest, Trust(allowed=keys.allowed), other).faults
    assert "was made with another data set" in fault.message


@pytest.mark.parametrize("change", NOT_DETECTED, ids=lambda change: change.__name__)
def test_forgeries_that_docs_list_as_undetected_verify(
    change: Change, honest: Path, keys: Keys, copy_of: Callable[[Path], Path]
) -> None:
    """Such a bundle verifies. If this changes, docs/spark.md has to change too."""
    bundle = forged(honest, change, keys, copy_of)
    assert verify(bundle, Trust(allowed=keys.allowed), EXAMPLE).faults == []
