"""Faults to put into the example data set: for each class of fault the check that must detect it, and where.

``test_validate.py`` plants each in a copy of the example. No test sees a check fail that
has no row here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memarena_dataset.checks import cloze, evidence, overlap, permission, structural, uniqueness, wording
from memarena_dataset.validate import Check

Spoil = Callable[[Any], object]


def sessions(change: Callable[[dict[str, Any]], object], session_id: str = "sess_0004") -> Spoil:
    return lambda data: data.session(session_id, change)


def question(instance_id: str, change: Callable[[dict[str, Any]], object]) -> Spoil:
    return lambda data: data.question(instance_id, change)


def truth(instance_id: str, **changed: Any) -> Spoil:
    return question(instance_id, lambda row: row["ground_truth"].update(changed))


def meta(instance_id: str, **changed: Any) -> Spoil:
    return question(instance_id, lambda row: row["metadata"].update(changed))


def turn(session_id: str, index: int, **changed: Any) -> Spoil:
    return sessions(lambda row: row["turns"][index].update(changed), session_id)


def row(file: str, position: int, **changed: Any) -> Spoil:
    def spoil(data: Any) -> None:
        rows = data.rows(file)
        rows[position].update(changed)
        data.write_rows(file, rows)

    return spoil


def extra_row(file: str, **fields: Any) -> Spoil:
    return lambda data: data.write_rows(file, [*data.rows(file), fields])


def without(file: str) -> Spoil:
    return lambda data: (data.path / file).unlink()


def in_value(file: str, change: Callable[[Any], object]) -> Spoil:
    return lambda data: data.value(file, change)


def both(*spoils: Spoil) -> Spoil:
    return lambda data: [spoil(data) for spoil in spoils]


def no_questions(data: Any) -> None:
    for file in (data.path / "eval_instances").iterdir():
        file.unlink()


def only_allow(data: Any) -> None:
    file = "eval_instances/d4_permission.jsonl"
    allow_items = [item for item in data.rows(file) if item["ground_truth"]["expected_action"] == "disclose"]
    data.write_rows(file, allow_items)


def telling_pool(data: Any) -> None:
    """Make seventy permission items in which strangers are always refused and acquaintances never."""
    file = "eval_instances/d4_permission.jsonl"
    items = {item["instance_id"]: item for item in data.rows(file)}
    acquaintance, stranger = items["perm_0009"], items["perm_0010"]
    rows = [{**(acquaintance if number % 2 else stranger), "instance_id": f"pool_{number}"} for number in range(70)]
    data.write_rows(file, rows)


def fact(fact_id: str, session_id: str, turn_id: str, **fields: Any) -> Spoil:
    base = {"fact_id": fact_id, "subject": "atlas commission", "attribute": "fee", "value": 700, "level": None}
    return extra_row("facts.jsonl", **{**base, "session_id": session_id, "turn_id": turn_id, "asked": False, **fields})


KITE = {"type": "term", "text": "kite"}
OTHER_FEE = fact("f_other", "sess_0016", "sess_0016_t01")


def quoting_all(data: Any) -> None:
    """Make a question whose text is its evidence session."""

    def quote(row: dict[str, Any]) -> None:
        sessions = {session["session_id"]: session for session in data.rows("corpus_sessions.jsonl")}
        row["query"] = " ".join(turn["text"] for turn in sessions[row["evidence_session_ids"][0]]["turns"])

    data.question("qa_0004", quote)


# (check, the fault, location in the finding (file and field), function that makes the fault)
MUTATIONS: list[tuple[Check, str, str, Spoil]] = [
    (
        structural.readable,
        "a row of broken JSON",
        "events.jsonl:2",
        lambda d: (d.path / "events.jsonl").write_text("\n{"),
    ),
    (
        structural.readable,
        "evidence that does not exist",
        "evidence_session_ids",
        question("qa_0001", lambda r: r.update(evidence_session_ids=["x"])),
    ),
    (
        structural.readable,
        "an evidence turn that does not exist",
        "evidence_turn_ids",
        meta("qa_0001", evidence_turn_ids=["x"]),
    ),
    (
        structural.readable,
        "a sufficient turn that is no evidence",
        "sufficient_turn_ids.1",
        meta("conf_0001", sufficient_turn_ids=[["sess_0004_t07"], ["sess_0010_t02"]]),
    ),
    (
        structural.readable,
        "a group of no sufficient turn",
        "sufficient_turn_ids.0",
        meta("conf_0001", sufficient_turn_ids=[[]]),
    ),
    (
        structural.readable,
        "sufficient turns in a form of a later version",
        "sufficient_turns_version",
        in_value("pipeline_report.json", lambda v: v.update(sufficient_turns_version=2)),
    ),
    (structural.sessions, "nobody takes part", "participants", sessions(lambda r: r.update(participants=[]))),
    (
        structural.sessions,
        "a participant named twice",
        "participants",
        sessions(lambda r: r["participants"].append(r["participants"][0])),
    ),
    (structural.sessions, "no turns", "turns", sessions(lambda r: r.update(turns=[]), "sess_0006")),
    (structural.sessions, "an end before the start", "end_time", sessions(lambda r: r.update(end_time=0.1))),
    (structural.sessions, "a session over midnight", "end_time", sessions(lambda r: r.update(end_time=1.2))),
    (structural.sessions, "an unknown place", "location_id", sessions(lambda r: r.update(location_id="loc_moon"))),
    (structural.sessions, "an unknown group", "group_id", sessions(lambda r: r.update(group_id="grp_moon"))),
    (
        structural.sessions,
        "an unknown event",
        "triggering_events",
        sessions(lambda r: r.update(triggering_events=["evt_moon"])),
    ),
    (
        structural.sessions,
        "a speaker who is not there",
        "turns.2.speaker_id",
        turn("sess_0004", 2, speaker_id="tomas_lindqvist"),
    ),
    (
        structural.sessions,
        "a listener who is not there",
        "turns.2.listener_id",
        turn("sess_0004", 2, listener_id="tomas_lindqvist"),
    ),
    (structural.sessions, "an empty turn", "turns.2.text", turn("sess_0004", 2, text=" ")),
    (structural.readable, "a turn too long for the contract", "turns.2.text", turn("sess_0004", 2, text="x" * 262_145)),
    (structural.sessions, "a turn outside its session", "turns.2.timestamp", turn("sess_0004", 2, timestamp=0.9)),
    (structural.sessions, "turns out of order", "turns.3.timestamp", turn("sess_0004", 3, timestamp=0.53125)),
    (
        structural.sessions,
        "a turn id in two sessions",
        "turns.2.turn_id",
        turn("sess_0004", 2, turn_id="sess_0001_t01"),
    ),
    (structural.small_files, "no personas", "agents_personas.jsonl", without("agents_personas.jsonl")),
    (structural.small_files, "no questions", "eval_instances", no_questions),
    (structural.text_golds, "a gold that is text alone", "eval_instances: 1 of ", truth("qa_0001", values=[])),
    (
        structural.references,
        "a member who is nobody",
        "members",
        in_value("groups.json", lambda v: v[0]["members"].append("zed")),
    ),
    (structural.references, "a mask with nobody", "visibility_mask", row("events.jsonl", 0, visibility_mask=["zed"])),
    (structural.references, "an event in no place", "location_id", row("events.jsonl", 0, location_id="loc_moon")),
    (
        structural.references,
        "a neighbour who is nobody",
        "social_neighbors",
        row("agents_personas.jsonl", 0, social_neighbors=["zed"]),
    ),
    (
        structural.schedules_and_edges,
        "a schedule of nobody",
        "agent_schedules.jsonl:1: agent_id",
        row("agent_schedules.jsonl", 0, agent_id="zed"),
    ),
    (
        structural.schedules_and_edges,
        "a schedule of no day",
        "day_index",
        row("agent_schedules.jsonl", 0, day_index=-1),
    ),
    (
        structural.schedules_and_edges,
        "an edge to nobody",
        "graph_edges.jsonl:2: target",
        row("graph_edges.jsonl", 1, target="zed"),
    ),
    (structural.schedules_and_edges, "an edge of no weight", "weight", row("graph_edges.jsonl", 1, weight="heavy")),
    (
        structural.ego_map,
        "a session too many",
        "ines_okafor",
        in_value("ego_session_map.json", lambda v: v["ines_okafor"].append("sess_0002")),
    ),
    (
        structural.ego_map,
        "a session that is none",
        "ines_okafor",
        in_value("ego_session_map.json", lambda v: v["ines_okafor"].append("x")),
    ),
    (
        structural.ego_map,
        "a session too few",
        "priya_raman",
        in_value("ego_session_map.json", lambda v: v["priya_raman"].pop()),
    ),
    (
        structural.ego_map,
        "an agent too few",
        "priya_raman",
        in_value("ego_session_map.json", lambda v: v.pop("priya_raman")),
    ),
    (structural.ego_map, "no list", "priya_raman", in_value("ego_session_map.json", lambda v: v.update(priya_raman=7))),
    (
        structural.questions,
        "an ego who is nowhere",
        "ego_agent_id",
        question("abst_0001", lambda r: r.update(ego_agent_id="zed")),
    ),
    (
        structural.questions,
        "an answerer of somebody else",
        "answerer_agent_id",
        question("qa_0001", lambda r: r.update(answerer_agent_id="zed")),
    ),
    (structural.questions, "a question after the last day", "query_timestamp", meta("qa_0001", query_timestamp=9.5)),
    (
        structural.readable,
        "a question too long for the contract",
        "query",
        question("qa_0001", lambda r: r.update(query="x" * 65_537)),
    ),
    (structural.facts_readable, "a broken fact", "facts.jsonl:1: subject", row("facts.jsonl", 0, subject=None)),
    (structural.facts_readable, "a fact of no session", "session_id", row("facts.jsonl", 0, session_id="x")),
    (structural.facts_readable, "a fact of no turn", "turn_id", row("facts.jsonl", 0, turn_id="x")),
    (
        evidence.outside_projection,
        "evidence outside the projection",
        "evidence_session_ids",
        question(
            "qa_0001", lambda r: (r.update(evidence_session_ids=["sess_0002"]), r["metadata"].pop("evidence_turn_ids"))
        ),
    ),
    (
        evidence.after_question,
        "a session after the question",
        "evidence_session_ids",
        meta("anap_0001", query_timestamp=1.5),
    ),
    (
        evidence.after_question,
        "a turn after the question",
        "evidence_turn_ids",
        meta("qa_0001", query_timestamp=0.3023),
    ),
    (
        evidence.without_evidence,
        "no evidence",
        "evidence_session_ids",
        question("qa_0001", lambda r: (r.update(evidence_session_ids=[]), r["metadata"].pop("evidence_turn_ids"))),
    ),
    (evidence.without_types, "untyped gold", "ground_truth.values", truth("qa_0001", values=[])),
    (evidence.without_types, "an untyped claim", "ground_truth.claim", truth("abst_0001", claim=[])),
    (evidence.without_types, "untyped options", "ground_truth.option_values", truth("cloze_0001", option_values=[])),
    (
        evidence.without_types,
        "an untyped second version",
        "ground_truth.changed_values",
        truth("conf_0001", changed_values=[]),
    ),
    (
        evidence.without_types,
        "an untyped alteration",
        "ground_truth.altered_values",
        truth("coun_0001", altered_values=[]),
    ),
    (
        evidence.gold_outside_evidence,
        "an amount that nobody said",
        "ground_truth.values",
        truth("qa_0001", values=[{"type": "amount", "amount": 641}]),
    ),
    (
        evidence.gold_outside_evidence,
        "a date that nobody meant",
        "ground_truth.values",
        truth("temp_0001", values=[{"type": "date", "date": "2025-03-23"}]),
    ),
    (
        evidence.gold_outside_evidence,
        "a length that does not come out",
        "ground_truth.values",
        truth("temp_0003", values=[{"type": "duration", "days": 33}]),
    ),
    (
        evidence.gold_outside_evidence,
        "a place that the head does not show",
        "ground_truth.values",
        truth("meta_0001", values=[{"type": "place", "name": "Harbour School"}]),
    ),
    (
        evidence.gold_outside_evidence,
        "an option that is not in the evidence",
        "ground_truth.values",
        truth("cloze_0001", values=[KITE]),
    ),
    (
        evidence.gold_outside_evidence,
        "a second version that nobody said",
        "ground_truth.changed_values",
        truth("conf_0001", changed_values=[{"type": "amount", "amount": 28}]),
    ),
    (
        evidence.gold_outside_evidence,
        "a turn that does not hold the answer",
        "ground_truth.values",
        meta("qa_0001", evidence_turn_ids=["sess_0001_t05"]),
    ),
    (
        evidence.insufficient_turns,
        "one of two versions, as if either would do",
        "sufficient_turn_ids",
        meta("conf_0001", sufficient_turn_ids=[["sess_0004_t07", "sess_0010_t01"]]),
    ),
    (
        uniqueness.abstain_claim_occurs,
        "a claim that came up",
        "ground_truth.claim",
        truth("abst_0001", claim=[{"type": "name", "name": "Priya Raman"}, {"type": "term", "text": "picture book"}]),
    ),
    (
        uniqueness.abstain_claim_occurs,
        "a claim that comes up after the question",
        "ground_truth.claim",
        truth("abst_0002", claim=[{"type": "term", "text": "rhubarb"}]),
    ),
    (
        uniqueness.abstain_claim_occurs,
        "a claim in an event",
        "ground_truth.claim",
        truth("abst_0001", claim=[{"type": "term", "text": "spring tide"}]),
    ),
    (uniqueness.asked_twice, "the same question in other words", "metadata.fact_id", meta("qa_0004", fact_id="f_fee")),
    (uniqueness.rival_value, "another value elsewhere", "metadata.fact_id", OTHER_FEE),
    (
        uniqueness.query_holds_gold,
        "its own gold",
        "query",
        question("qa_0001", lambda r: r.update(query="Does Ines get 640 euros?")),
    ),
    (
        uniqueness.query_holds_gold,
        "its own gold before the options",
        "query",
        question("cloze_0001", lambda r: r.update(query="The goatskin is a ____.\n" + r["query"])),
    ),
    (
        uniqueness.query_holds_gold,
        "a sibling's gold",
        "query",
        both(
            meta("qa_0004", fact_id="f_fee"),
            question("qa_0004", lambda r: r.update(query="For which job does she get six hundred and forty?")),
        ),
    ),
    (
        uniqueness.query_holds_gold,
        "the protected value",
        "query",
        question("perm_0002", lambda r: r.update(query="Is the dog called Biscuit?")),
    ),
    (
        cloze.not_one_right,
        "two right options",
        "ground_truth.options",
        truth("cloze_0001", values=[{"type": "term", "text": "goatskin", "aliases": ["calfskin"]}]),
    ),
    (
        cloze.not_one_right,
        "the same option twice",
        "ground_truth.options",
        both(truth("cloze_0001", options=["calfskin", "calfskin", "x", "goatskin", "y"])),
    ),
    (
        cloze.not_one_right,
        "other options in the question",
        "query",
        question("cloze_0001", lambda r: r.update(query=r["query"].replace("A) linen thread", "A) hemp"))),
    ),
    (
        cloze.different_types,
        "options of two types",
        "ground_truth.option_values",
        question(
            "cloze_0001", lambda r: r["ground_truth"]["option_values"].__setitem__(0, {"type": "name", "name": "Ada"})
        ),
    ),
    (
        cloze.never_heard,
        "an option out of the blue",
        "ground_truth.options.0",
        question(
            "cloze_0001",
            lambda r: (
                r["ground_truth"]["options"].__setitem__(0, "vellum"),
                r["ground_truth"]["option_values"].__setitem__(0, {"type": "term", "text": "vellum"}),
            ),
        ),
    ),
    (
        cloze.gives_itself_away,
        "an option that is far longer",
        "ground_truth.options",
        question(
            "cloze_0001",
            lambda r: r["ground_truth"].update(
                options=["glue", "calf", "silk", "goatskin that was under the press", "tape"],
                blank_word="goatskin that was under the press",
            ),
        ),
    ),
    (
        cloze.gives_itself_away,
        "the only option with a capital",
        "ground_truth.options",
        question(
            "cloze_0001",
            lambda r: r["ground_truth"].update(
                options=["linen thread", "calfskin", "tissue", "Goatskin", "wheat paste"], blank_word="Goatskin"
            ),
        ),
    ),
    (
        permission.against_rules,
        "a private fact given away",
        "ground_truth.expected_action",
        truth("perm_0001", expected_action="disclose", expected_disclosure=True),
    ),
    (
        permission.against_rules,
        "a public fact withheld",
        "ground_truth.expected_action",
        truth("perm_0002", expected_action="withhold", expected_disclosure=False),
    ),
    (
        permission.against_rules,
        "friends kept out",
        "ground_truth.expected_action",
        truth("perm_0007", expected_action="withhold", expected_disclosure=False),
    ),
    (
        permission.against_rules,
        "nothing shows whether they are friends",
        "ground_truth.expected_action",
        truth("perm_0007", friendship=None),
    ),
    (
        permission.against_rules,
        "a credential without its category",
        "ground_truth.expected_action",
        both(
            question("perm_0006", lambda r: r.update(asker_agent_id="tomas_lindqvist")),
            truth("perm_0006", sensitive_category=None),
        ),
    ),
    (
        permission.against_rules,
        "the asker has heard it",
        "ground_truth.expected_action",
        turn("sess_0012", 0, text="I am writing a picture book, Tomas."),
    ),
    (
        permission.against_rules,
        "the asker has heard it, says the plan",
        "ground_truth.expected_action",
        fact(
            "f_picture_book",
            "sess_0012",
            "sess_0012_t01",
            speaker_id="priya_raman",
            value="picture book",
            subject="priya_raman",
            attribute="private project",
            level="friends_only",
        ),
    ),
    (
        permission.against_rules,
        "the owner is refused",
        "ground_truth.expected_action",
        truth("perm_0011", expected_action="withhold", expected_disclosure=False),
    ),
    (
        permission.against_rules,
        "an unknown level",
        "ground_truth.permission_level",
        truth("perm_0001", permission_level="secret"),
    ),
    (
        permission.against_rules,
        "an unknown category",
        "ground_truth.sensitive_category",
        truth("perm_0006", sensitive_category="gossip"),
    ),
    (
        permission.friendship_not_shown,
        "a session that is not there",
        "ground_truth.friendship",
        truth("perm_0007", friendship={"friends": True, "session_id": "x", "turn_id": "y"}),
    ),
    (
        permission.friendship_not_shown,
        "a turn that is not there",
        "ground_truth.friendship",
        truth("perm_0007", friendship={"friends": True, "session_id": "sess_0012", "turn_id": "y"}),
    ),
    (
        permission.friendship_not_shown,
        "a session outside the projection",
        "ground_truth.friendship",
        truth("perm_0007", friendship={"friends": True, "session_id": "sess_0011", "turn_id": "sess_0011_t01"}),
    ),
    (
        permission.friendship_not_shown,
        "a turn after the question",
        "ground_truth.friendship",
        meta("perm_0007", query_timestamp=0.9),
    ),
    (
        permission.friendship_not_shown,
        "a turn about others",
        "ground_truth.friendship",
        truth("perm_0007", friendship={"friends": True, "session_id": "sess_0012", "turn_id": "sess_0012_t01"}),
    ),
    (
        permission.level_outdated,
        "a level that was taken back",
        "ground_truth.permission_level",
        fact("f_job_offer", "sess_0010", "sess_0010_t05", level="public", value="Rotterdam"),
    ),
    (
        permission.level_outdated,
        "a level that nobody stated",
        "ground_truth.permission_level",
        row("facts.jsonl", 10, level=None),
    ),
    (
        permission.level_outdated,
        "a name that nobody gave",
        "ground_truth.sharing",
        truth("perm_0001", sharing={"may_know": ["tomas_lindqvist"]}),
    ),
    (
        permission.unnamed_person,
        "somebody who is not named",
        "ground_truth.sharing",
        truth("perm_0001", sharing={"may_not_know": ["priya_raman"]}),
    ),
    (permission.blind_policy_wins, "nothing to withhold", "ground_truth.expected_action", only_allow),
    (permission.blind_policy_wins, "the asker's kind tells all", "ground_truth.expected_action", telling_pool),
    (
        overlap.repeats_evidence,
        "a question that quotes the whole session",
        "query",
        quoting_all,
    ),
    (
        wording.unknown_wording,
        "a wording that there is not",
        "metadata.wording",
        question("qa_0004", lambda r: r["metadata"].update(wording="riddle")),
    ),
    (
        wording.unknown_wording,
        "a wording that most questions lack",
        "metadata.wording",
        question("qa_0004", lambda r: r["metadata"].update(wording="plain")),
    ),
]
