"""Tests the LLM engine's checks of a text: planned statements, unplanned hard facts, rewordings of questions."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena_dataset.validate import Profile, validate
from memarena_masim.config import WorldConfig
from memarena_masim.engines import sentences
from memarena_masim.engines.connection import EndpointConfig
from memarena_masim.engines.hard_facts import Allowed, Detector
from memarena_masim.engines.llm import LlmEngine
from memarena_masim.engines.model import Question, Setting
from memarena_masim.engines.points import Point, asks_of, points_of
from memarena_masim.engines.prompting import Brief, session_prompt
from memarena_masim.engines.replies import read_session, read_text
from memarena_masim.engines.rewording import fault_of
from memarena_masim.facts.catalogue import catalogue
from memarena_masim.output.generate import generate
from memarena_masim.plan.day import Planner
from memarena_masim.world.build import build_world

from tests.support.model_script import Body, Script
from tests.support.model_server import ModelServer

from .scripted_llm import perfect, read, requests

CONFIG = WorldConfig(name="test", agents=8, days=4, density=0.3, seed=105)
SAID_ON = date(2025, 1, 1)


@pytest.fixture(scope="module")
def points() -> list[Point]:
    """All statements of a small world."""
    planner = Planner(CONFIG, build_world(CONFIG), catalogue(CONFIG.words))
    all_points: list[Point] = []
    for day in range(CONFIG.days):
        plan = planner.plan(day)
        planner.commit(plan)
        statements = {statement.statement_id: statement for statement in (*plan.stated, *plan.mentioned)}
        for session in plan.sessions:
            all_points += points_of(CONFIG, session, statements)
            for ask in asks_of(CONFIG, session):
                assert ask.said_in(f"Well. {ask.sentence}")
    return all_points


def test_said_in_accepts_the_banks_own_sentences(points: list[Point]) -> None:
    """And rejects a text without the statement."""
    assert len({point.kind for point in points}) >= 6
    for point in points:
        assert point.said_in(" ".join(("Well now.", *point.sentences, "There.")))
        assert not point.said_in("Well now. I would rather talk about something else.")


def test_said_in_rejects_a_statement_with_another_value_and_item(points: list[Point]) -> None:
    """The sentence of one detail never passes for another detail."""
    details = [point for point in points if point.kind == "detail"][:60]
    for point in details:
        for other in details:
            same = (
                other.stated.value.text == point.stated.value.text or other.stated.fact.item == point.stated.fact.item
            )
            assert same or not point.said_in(" ".join(other.sentences))


def test_said_in_accepts_another_wording_with_value_item_and_person(points: list[Point]) -> None:
    """Without the item, or with another number, it is rejected."""
    point = next(p for p in points if p.stated.value.value.type == "amount" and not p.verbatim and not p.exact)
    value, item = point.stated.value.text, point.stated.fact.item
    who = "" if point.stated.speaker == point.stated.fact.subject else dict(point.slots)["subject"]
    assert point.said_in(f"Just so you know, {who}, {item}: {value}, would you believe it.")
    assert not point.said_in(f"Just so you know, {who}: {value}, would you believe it.")
    assert not point.said_in(f"Just so you know, {who}, {item}: 9999 euros, would you believe it.")


def test_a_prompt_says_what_the_session_is_about() -> None:
    """The event stands in the prompts of its sessions."""
    world = build_world(CONFIG)
    planner = Planner(CONFIG, world, catalogue(CONFIG.words))
    sessions = [session for session in planner.plan(0).sessions if session.event is not None]
    assert sessions
    for session in sessions:
        assert session.event is not None
        prompt = session_prompt(Brief(session, (), ()), Setting(CONFIG, world))[1]["content"]
        assert session.event.told in prompt


@pytest.fixture(scope="module")
def detector() -> Detector:
    """A detector of hard facts for the world of ``CONFIG``."""
    return Detector(build_world(CONFIG), CONFIG.words)


ALLOWED = Allowed(["The desk lamp cost me 45 euros.", "Maya", "Wednesday", "At 4:35 pm on March 14."], SAID_ON)


@pytest.mark.parametrize(
    ("sentence", "kinds"),
    [
        ("I paid 45 euros for the desk lamp, Maya.", set()),
        ("One of those days, and no one to blame.", set()),
        ("That Wednesday again, at 4:35 pm.", set()),
        ("It may rain, and then we march home.", set()),
        ("The TV was on, I think, OK?", set()),
        ("Well, Maya's idea was good.", set()),
        ("It cost forty-six euros.", {"number"}),
        ("There were 12 of them.", {"number"}),
        ("See you on Friday.", {"date"}),
        ("It was on March 15.", {"date", "number"}),
        ("That was back in October.", {"date"}),
        ("Let's meet at noon.", {"time"}),
        ("My sister told Leopold about it.", {"name"}),
        ("Sarah told me so.", {"name"}),
        ("We all went to Paris.", {"name"}),
        ("I found a typewriter.", {"value"}),
        ("The flat viewing was late.", {"value"}),
    ],
)
def test_detector_reports_unplanned_hard_facts(sentence: str, kinds: set[str], detector: Detector) -> None:
    """Numbers, dates, times, names and things of facts; not harmless words that look like them."""
    assert {fact.kind for fact in detector.find(sentence, ALLOWED)} == kinds


@pytest.mark.parametrize("number", [2, 3, 7, 10, 11, 12, 13, 19, 20, 25, 40, 99, 100, 640, 1000, 2_000_000])
def test_numbers_in_words_are_numbers(number: int, detector: Detector) -> None:
    """Whatever the reading of numbers knows is found, at the start of a sentence too."""
    spelled = {2: "two", 3: "three", 7: "seven", 10: "ten", 11: "eleven", 12: "a dozen", 13: "thirteen"}
    spelled |= {19: "nineteen", 20: "twenty", 25: "twenty-five", 40: "forty", 99: "ninety-nine", 100: "a hundred"}
    spelled |= {640: "six hundred and forty", 1000: "a thousand", 2_000_000: "two million"}
    for words in (spelled[number], spelled[number].capitalize(), str(number)):
        assert [fact.kind for fact in detector.find(f"{words} of them, no less.", ALLOWED)] == ["number"]


def test_planned_sentences_hold_nothing_unplanned(points: list[Point], detector: Detector) -> None:
    """What a turn has to say is never taken out of it."""
    for point in points:
        allowed = Allowed([*point.sentences, *(text for _, text in point.slots)], point.said_on)
        assert [detector.find(sentence, allowed) for sentence in point.sentences] == [()] * len(point.sentences)


@given(st.lists(st.from_regex(r"[A-Z][a-z]{1,6}( [a-z]{1,6}){0,5}[.!?]", fullmatch=True), min_size=1, max_size=6))
def test_splitting_and_joining_sentences_gives_the_text(parts: list[str]) -> None:
    """No sentence is lost or cut."""
    text = " ".join(parts)
    assert sentences.split(text) == parts
    longer_text = sentences.insert(text, ("This is new.",))
    assert [sentence for sentence in sentences.split(longer_text) if sentence != "This is new."] == parts


@given(st.text(max_size=200), st.booleans())
def test_any_reply_can_be_read(text: str, cut: bool) -> None:
    """Whatever a model sends, reading it ends in turns or in named faults."""
    reply = read_session(text, cut, ("Maya", "Leo"))
    assert len(reply.turns) == 2
    assert reply.usable == 2 or reply.faults
    read_text(text, "text")


# ------------------------------------------------------------------ questions

QUESTION = Question(
    question_id="q1",
    text="How much did Maya Chen pay for the desk lamp?",
    names=("Maya Chen",),
    anchors=("the desk lamp",),
    sources=("In the end the desk lamp cost me 45 euros, delivery and all.",),
    gives_away=lambda text: "45" in text,
)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("What sum did Maya Chen part with when she bought her lamp?", None),
        ("What sum did Maya part with when she bought her lamp?", "loses_a_name"),
        ("What sum did Maya Chen part with when she bought her bicycle?", "loses_what_it_asks_for"),
        ("What sum, 45 maybe, did Maya Chen part with when she bought her lamp?", "states_the_gold"),
        ("What sum, 12 maybe, did Maya Chen part with when she bought her lamp?", "adds_a_number"),
        ("What did maya_chen, Maya Chen that is, part with for her lamp?", "names_an_id"),
        ("Maya Chen, desk lamp, cost, delivery, end?", "repeats_the_evidence"),
        ("Did Maya Chen say what the desk lamp cost?", "repeats_the_evidence"),
        ("Maya Chen " + "lamp and so on " * 20, "too_long"),
        ("And Maya Chen?", "loses_what_it_asks_for"),
    ],
)
def test_rewordings_that_do_not_hold(text: str, fault: str | None) -> None:
    """Each is refused for its own reason."""
    assert fault_of(QUESTION, text) == fault


def rewording(body: Body) -> Script:
    """Questions asked in a roundabout way, every third one wrongly."""
    request = read(body)
    if request.kind != "question":
        return Script(perfect(body))
    question = request.user.split("\n\n")[1]
    if len(question) % 3 == 0:
        return Script(json.dumps({"question": "What was it again?"}))
    return Script(json.dumps({"question": f"Remind me, please, of one thing that slipped away entirely: {question}"}))


def test_questions_are_reworded_within_the_limits(tmp_path: Path) -> None:
    """Accepted rewordings are used, other questions keep the templates' wording; all are counted."""
    config = WorldConfig(name="test", agents=6, days=3, density=0.3, question_share=2.0, seed=106)
    with ModelServer(rewording) as server, LlmEngine(EndpointConfig(server.base_url, "m")) as engine:
        generate(config, tmp_path / "w", engine=engine)
    counts = json.loads((tmp_path / "w" / "pipeline_report.json").read_text())["engine"]["questions"]
    kept_count = sum(counts["kept_as_they_were"].values())
    assert counts["asked"] == counts["reworded"] + kept_count == len(requests(server, "question"))
    assert counts["reworded"] > 0
    rows = [
        json.loads(line)
        for path in (tmp_path / "w" / "eval_instances").iterdir()
        for line in path.read_text().splitlines()
    ]
    assert sum(row["query"].startswith("Remind me, please, of one") for row in rows) == counts["reworded"]
    paired = [row["query"] for row in rows if row["dimension"] in ("d3_confabulation", "x1_witness")]
    assert not any(query.startswith("Remind me, please, of one") for query in paired)
    assert [str(finding.problem) for finding in validate(tmp_path / "w", Profile.FULL).errors] == []
