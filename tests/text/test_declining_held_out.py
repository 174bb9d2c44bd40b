"""The refusal lexicon on more than 500 answers whose phrasings it was not written from, real ones among them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from memarena.text.stance import read_stance

FILES = ("declining_held_out", "declining_second")
AIM = 0.02


def labelled(dataset: str) -> list[tuple[bool, str, str]]:
    """Whether it abstains, the question, the answer."""
    table = tomllib.loads((Path(__file__).parent / "data" / f"{dataset}.v1.toml").read_text("utf-8"))
    rows = []
    for kind in ("abstains", "answers"):
        for phrasing in table[kind]:
            for subject in table["subjects"]:
                answer = phrasing
                for name in ("topic", "value", "who"):
                    answer = answer.replace("{" + name + "}", subject[name])
                rows.append((kind == "abstains", subject["question"], answer[0].upper() + answer[1:]))
        rows += [(kind == "abstains", question, answer) for question, answer in table["real"][kind]]
    return rows


@pytest.mark.parametrize("name", FILES)
def test_few_refusals_are_missed_and_few_answers_taken_for_refusals(name: str) -> None:
    """Both sets were extended from since: a regression bound. First sight, also of a third: docs/judging.md."""
    rows = labelled(name)
    assert len(rows) >= 500
    wrong = [(abstains, a) for abstains, q, a in rows if read_stance(a, q).abstains != abstains]
    missed = [a for abstains, a in wrong if abstains]
    taken = [a for abstains, a in wrong if not abstains]
    refusals = sum(abstains for abstains, _, _ in rows)
    assert len(missed) / refusals <= AIM, missed
    assert len(taken) / (len(rows) - refusals) <= AIM, taken
