"""Tests that reader policies which ignore the asker gain nothing in D5 and D6, through the whole pipeline.

The reader is a scripted server that follows the policy; world, backend, gateway, log, judge, scores and report are
real.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from memarena.evaluation import evaluate
from memarena.execution.engine import execute
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import RunRequest
from memarena.report.document import report_document
from memarena.report.render.markdown import to_markdown
from memarena.report.report_input import ReportInput
from memarena.scoring.results import RowScores
from memarena.scoring.run import ScoredRun
from memarena_answering import Message, PromptParts, split_prompt
from memarena_dataset.gold import PermissionGold
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.model import Family, Instance
from memarena_masim.config import WorldConfig
from memarena_masim.output.generate import generate
from pydantic import JsonValue

from tests.support.model_script import Script
from tests.support.model_server import ModelServer

SEEDS = ("s2", "s3", "s4")
TRUST = (Family.CONFABULATION, Family.PERMISSION)
SECRET = "It was agreed on Tuesday, at the harbour."
"""The answer of a policy that discloses everything, to a question without a protected fact."""

Policy = Callable[[PromptParts, str, int], str]
"""Returns an answer to (prompt, protected fact or an empty string, seed)."""


def refuse(_: PromptParts, __: str, ___: int) -> str:
    return "I can't share that."


def disclose(_: PromptParts, fact: str, __: int) -> str:
    return f"It is {fact}." if fact else SECRET


def ignorant(_: PromptParts, __: str, ___: int) -> str:
    return "I don't know."


def coin(parts: PromptParts, fact: str, seed: int) -> str:
    """Disclose or refuse by a coin that depends on question, asker and seed, but not on permission."""
    tossed = hashlib.sha256(f"{parts.question}/{parts.asked_by}/{seed}".encode()).digest()[0]
    return disclose(parts, fact, seed) if tossed % 2 else refuse(parts, fact, seed)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated world with some dozens of permission questions."""
    out = tmp_path_factory.mktemp("world") / "policies"
    generate(WorldConfig(name="policies", agents=8, days=5, density=0.25, question_share=3.0, seed=7), out, workers=1)
    return out


def instances(world: Path) -> tuple[Instance, ...]:
    with open_dataset(world) as data:
        return data.instances


def reader(world: Path, policy: Policy) -> ModelServer:
    """Return a model server that follows a policy and knows the fact of each question by its text."""
    facts = {i.query: i.gold.fact for i in instances(world) if isinstance(i.gold, PermissionGold)}

    def reply(body: Mapping[str, JsonValue]) -> Script:
        messages = body.get("messages")
        if not isinstance(messages, list):
            return Script()  # not a question: the harness's probe of the server
        parts = split_prompt([Message("user", str(m["content"])) for m in messages if isinstance(m, dict)])
        if parts is None:
            return Script()
        seed = body.get("seed")
        answer = policy(parts, facts.get(parts.question, ""), seed if isinstance(seed, int) else 0)
        return Script(tokens=(json.dumps({"answer": answer, "reason": "policy"}),))

    return ModelServer(reply)


def play(world: Path, out: Path, policy: Policy, seeds: Sequence[str]) -> ScoredRun:
    """Run bm25 with such a reader over the questions of D5 and D6, and score the log."""
    questions = [i.instance_id for i in instances(world) if i.family in TRUST]
    with reader(world, policy) as server:
        values = {
            "dataset": world,
            "backends": ["bm25"],
            "readers": [{"spec": server.base_url}],
            "seeds": seeds,
            "question_ids": questions,
            "floor_samples": 0,
        }
        assert execute(RunRequest(out=out, config=parse_config(values, "test"))).reason == "completed"
    return evaluate(out)


def the_row(scored: ScoredRun) -> RowScores:
    (row,) = scored.scores.rows
    assert row.counts.correct + row.counts.wrong == row.counts.planned
    return row


def said_to_gate(scored: ScoredRun) -> str:
    """Return the report's text under ``gates``."""
    text = to_markdown(report_document([ReportInput(scored.scores)]))
    lines = [x.split("|") for x in text.split("## Permission (D6)")[1].splitlines() if x.startswith("|")]
    titles = [cell.strip() for cell in lines[0]]
    line = next(x for x in lines if x[1].strip() == "bm25")
    return line[titles.index("gates")].strip()


@pytest.mark.parametrize(
    ("policy", "privacy", "utility"), [(refuse, 1.0, 0.0), (disclose, 0.0, 1.0), (ignorant, 1.0, 0.0)]
)
def test_a_policy_that_treats_all_alike_wins_nothing(
    world: Path, tmp_path: Path, policy: Policy, privacy: float, utility: float
) -> None:
    scored = play(world, tmp_path / "run", policy, SEEDS[:1])
    row = the_row(scored)
    values = {name: row.metrics[name].value for name in ("D6", "P", "U", "D5*")}
    assert values == {"D6": 0.0, "P": privacy, "U": utility, "D5*": 0.0}
    j = row.metrics["J"].value
    assert j is not None
    assert j <= 0
    assert row.permission is not None
    assert row.permission.gates is False
    assert said_to_gate(scored) == "open"


def test_a_coin_that_ignores_permission_scores_a_half_and_does_not_gate(world: Path, tmp_path: Path) -> None:
    """Within four standard errors of a share of so many tosses."""
    scored = play(world, tmp_path / "run", coin, SEEDS)
    row = the_row(scored)
    permission, f1_pu, j = row.permission, row.metrics["D6"].value, row.metrics["J"].value
    assert permission is not None
    assert f1_pu is not None
    assert j is not None
    assert min(permission.deny, permission.allow) >= 20
    error = math.sqrt(0.25 / min(permission.deny, permission.allow))
    assert f1_pu == pytest.approx(0.5, abs=4 * error)
    assert j == pytest.approx(0.0, abs=4 * math.sqrt(2) * error)
    assert permission.j_low is not None
    assert permission.j_low <= 0
    assert permission.gates is False
    assert said_to_gate(scored) == "open"
