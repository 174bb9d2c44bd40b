"""Checks permission questions: the action follows from the rules, and no blind policy predicts it.

A blind policy decides without the history: by the asker's kind, by the fact's category, or by the question's words.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from memarena_dataset.checks.blind_words import auc_of_words, standard_error
from memarena_dataset.checks.findings import Finding
from memarena_dataset.checks.world import World, fact_id_of, stem_of
from memarena_dataset.errors import RowProblem
from memarena_dataset.gold import FriendshipShown, PermissionGold, Sharing
from memarena_dataset.io.files import INSTANCE_FOLDER
from memarena_dataset.model import Fact, Family, Instance, Session, Turn
from memarena_dataset.permission_rules import CIRCLES, LEVELS, SENSITIVE_CATEGORIES, AccessCase, decide
from memarena_dataset.values.phrases import normal, phrase_occurs, tokens_of
from memarena_dataset.values.possible import names_value

POOL_FOR_AUC = 60
"""Fewest items for which the predictability of the action is tested."""
MAX_AUC = 0.55
"""Maximum AUC with which the asker's kind, the category or the words alone may predict the action."""
_COMMON = frozenset(("amount", "time", "weekday", "date", "duration"))
"""Types of values that may occur in a conversation about something else."""
SURE = 1.64
"""Number of standard errors above MAX_AUC from which a finding is an error: one-sided 5%."""


def _items(world: World) -> Iterator[tuple[Instance, PermissionGold]]:
    for instance in world.of(Family.PERMISSION):
        if isinstance(instance.gold, PermissionGold):
            yield instance, instance.gold


def against_rules(world: World) -> Iterator[Finding]:
    """Yield actions that do not follow from the rules, and questions that no rule decides."""
    for instance, gold in _items(world):
        if gold.permission_level is not None and gold.permission_level not in LEVELS:
            reason = f"{gold.permission_level!r}; one of {', '.join(LEVELS)} or null is expected"
            yield world.at(instance, "permission-against-rules", "ground_truth.permission_level", reason)
            continue
        if gold.sensitive_category is not None and gold.sensitive_category not in SENSITIVE_CATEGORIES:
            reason = f"{gold.sensitive_category!r}; one of {', '.join(SENSITIVE_CATEGORIES)} or null is expected"
            yield world.at(instance, "permission-against-rules", "ground_truth.sensitive_category", reason)
            continue
        for until in dict.fromkeys((world.asked_until(instance), float(world.dataset.day_count))):
            decision = decide(case_of(world, instance, gold, until))
            when = "" if until == world.asked_until(instance) else " at the end"
            if decision.action is None:
                reason = f"must not be asked: rule {decision.rule} does not decide it{when}"
            elif decision.action != gold.expected_action:
                reason = f"{gold.expected_action!r}, but rule {decision.rule} says {decision.action!r}{when}"
            else:
                continue
            yield world.at(instance, "permission-against-rules", "ground_truth.expected_action", reason)
            break


def case_of(world: World, instance: Instance, gold: PermissionGold, until: float) -> AccessCase:
    """Return the access case of an instance that is asked at the end of the day before ``until`` (days)."""
    asker = instance.asker_agent_id
    sharing = gold.sharing or Sharing()
    return AccessCase(
        asker=asker,
        ego=instance.ego_agent_id,
        subject=gold.target_agent,
        heard_from_subject=_heard_from_subject(world, instance, gold),
        level=gold.permission_level,
        friends=None if gold.friendship is None else gold.friendship.friends,
        sensitive=gold.sensitive_category is not None,
        known_to_ego=asker is not None and _knows(world, instance.ego_agent_id, asker, world.asked_until(instance)),
        relation="" if asker is None else world.dataset.relationship(instance.ego_agent_id, asker),
        may_know=sharing.may_know,
        may_not_know=sharing.may_not_know,
        pending=sharing.not_before is not None and world.date_of(until - 1) < sharing.not_before,
    )


def _knows(world: World, ego: str, other: str, until: float) -> bool:
    if other in world.dataset.neighbors(ego):
        return True
    corpus = world.dataset.corpus
    shared = frozenset(corpus.session_ids_of(ego)) & frozenset(corpus.session_ids_of(other))
    return any(corpus.start_of(session_id) < until for session_id in shared)


def _heard_from_subject(world: World, instance: Instance, gold: PermissionGold) -> bool:
    """Whether the asker takes part in a session, at any time, in which the fact's subject states it."""
    asker, subject = instance.asker_agent_id, gold.target_agent
    if asker is None or subject is None or asker in (subject, instance.ego_agent_id):
        return False
    corpus = world.dataset.corpus
    together = frozenset(corpus.session_ids_of(asker)) & frozenset(corpus.session_ids_of(subject))
    planned = world.facts_by_id.get(fact_id_of(instance) or "", ())
    if any(fact.session_id in together and fact.speaker_id == subject for fact in planned):
        return True
    if planned and all(value.type in _COMMON for value in gold.values):
        return False  # facts.jsonl names who states it: the same amount or day elsewhere is not the fact
    return any(_says(world, session_id, subject, gold) for session_id in sorted(together))


def _says(world: World, session_id: str, speaker: str, gold: PermissionGold) -> bool:
    """Whether a person states all values of a fact explicitly in a session."""
    turns = [turn for turn in world.session(session_id).turns if turn.speaker_id == speaker]
    return bool(gold.values) and all(
        any(names_value(value, turn.text, world.date_of(turn.timestamp)) for turn in turns) for value in gold.values
    )


def friendship_not_shown(world: World) -> Iterator[Finding]:
    """Yield items whose turn that should show a friendship cannot show it."""
    for instance, gold in _items(world):
        if gold.friendship is not None:
            reason = _friendship_fault(world, instance, gold, gold.friendship)
            if reason:
                yield world.at(instance, "friendship-not-shown", "ground_truth.friendship", reason)


def _friendship_fault(world: World, instance: Instance, gold: PermissionGold, shown: FriendshipShown) -> str:
    """Return what is wrong with the turn that is cited as the proof of a friendship; empty if nothing is."""
    if shown.session_id not in world.dataset.corpus:
        return f"session {shown.session_id!r} does not exist in the corpus"
    session = world.session(shown.session_id)
    turn = next((turn for turn in session.turns if turn.turn_id == shown.turn_id), None)
    if turn is None:
        return f"turn {shown.turn_id!r} is not in session {shown.session_id!r}"
    if instance.ego_agent_id not in session.participants:
        return f"session {shown.session_id!r} is outside the projection of {instance.ego_agent_id!r}"
    if turn.timestamp >= world.asked_until(instance):
        return f"turn {shown.turn_id!r} is said after the question"
    silent = [
        person for person in (instance.asker_agent_id, gold.target_agent) if not _concerns(world, session, turn, person)
    ]
    return f"turn {shown.turn_id!r} is neither spoken by {silent[0]!r}, nor to them, nor about them" if silent else ""


def _concerns(world: World, session: Session, turn: Turn, agent_id: str | None) -> bool:
    """Whether a turn is spoken by a person, to them or about them."""
    if agent_id is None or agent_id in session.participants:
        return agent_id is not None
    name = world.name(agent_id)
    return any(phrase_occurs(form, normal(turn.text)) for form in (name, name.split()[0]))


def level_outdated(world: World) -> Iterator[Finding]:
    """Yield wishes other than the one that counts: the subject's latest, else the latest. Needs ``facts.jsonl``."""
    for instance, gold in _items(world):
        statements = world.facts_by_id.get(fact_id_of(instance) or "", ())
        if not statements:
            continue
        for until in dict.fromkeys((world.asked_until(instance), float(world.dataset.day_count))):
            wish = _wish_that_counts(world, instance, gold, statements, until)
            level = None if wish is None else wish.level
            sharing = None if wish is None else wish.sharing
            if level != gold.permission_level:
                reason = f"{gold.permission_level!r}, but the latest level stated before day {until:g} is {level!r}"
                yield world.at(instance, "permission-level-outdated", "ground_truth.permission_level", reason)
                break
            if sharing != gold.sharing:
                reason = f"not what was asked for last before day {until:g}: {_in_words(sharing)}"
                yield world.at(instance, "permission-level-outdated", "ground_truth.sharing", reason)
                break


def _wish_that_counts(
    world: World, instance: Instance, gold: PermissionGold, statements: Sequence[Fact], until: float
) -> Fact | None:
    """Return the latest wish that the ego heard before ``until``: of the fact's subject, else of another person."""
    ego_sessions = frozenset(world.dataset.corpus.session_ids_of(instance.ego_agent_id))
    start_of = world.dataset.corpus.start_of
    heard = [
        fact
        for fact in statements
        if fact.session_id in ego_sessions
        and (fact.level is not None or fact.sharing is not None)
        and start_of(fact.session_id) < until
    ]
    by_subject = [fact for fact in heard if fact.speaker_id in (None, gold.target_agent)]
    return max(by_subject or heard, key=lambda fact: start_of(fact.session_id), default=None)


def _in_words(sharing: Sharing | None) -> str:
    return "nothing" if sharing is None else sharing.model_dump_json(exclude_defaults=True)


def unnamed_person(world: World) -> Iterator[Finding]:
    """Yield persons whom a wish names by id, but no turn of the evidence by name."""
    for instance, gold in _items(world):
        if gold.sharing is None:
            continue
        words = " ".join(normal(turn.text) for turn in world.evidence_turns(instance))
        for person in (*gold.sharing.may_know, *gold.sharing.may_not_know):
            forms = _CIRCLE_FORMS[person] if person in CIRCLES else (world.name(person), world.name(person).split()[0])
            if not any(phrase_occurs(form, words) for form in forms):
                reason = f"{person!r} is not named in the evidence"
                yield world.at(instance, "permission-nobody-named", "ground_truth.sharing", reason)


_CIRCLE_FORMS = {"family": ("family",), "colleague": ("colleague", "colleagues")}


def blind_policy_wins(world: World) -> Iterator[Finding]:
    """Yield a finding if all items expect one action, or a feature without the fact predicts the action.

    The latter is an error if it is statistically sure (:data:`SURE`), else a warning.
    """
    items = [(instance, gold) for instance, gold in _items(world) if not (gold.self_item or gold.control)]
    file = f"{INSTANCE_FOLDER}/{Family.PERMISSION.value}.jsonl"
    actions = Counter(gold.expected_action for _, gold in items)
    if items and len(actions) < 2:
        reason = f"all {len(items)} items expect {next(iter(actions))!r}; both actions are needed"
        yield Finding("permission-pool", "error", RowProblem(file, reason, field="ground_truth.expected_action"))
    if len(items) < POOL_FOR_AUC or len(actions) < 2:
        return
    disclosed = [gold.expected_action == "disclose" for _, gold in items]
    features: dict[str, Sequence[object]] = {
        "the asker's kind": [_asker_kind(world, instance) for instance, _ in items],
        "the category": [gold.sensitive_category for _, gold in items],
    }
    aucs = {name: auc_of_feature(values, disclosed) for name, values in features.items()}
    aucs["the words of the question"] = auc_of_words(
        [frozenset(tokens_of(stem_of(instance))) for instance, _ in items],
        [fact_id_of(instance) or instance.instance_id for instance, _ in items],
        disclosed,
    )
    for name, auc in aucs.items():
        if auc > MAX_AUC:
            sure = auc - SURE * standard_error(auc, actions["disclose"], actions["withhold"]) > MAX_AUC
            reason = f"{name} alone predicts the action with AUC {auc:.2f}; at most {MAX_AUC} is expected"
            problem = RowProblem(file, reason, field="ground_truth.expected_action")
            yield Finding("permission-pool", "error" if sure else "warning", problem)


def _asker_kind(world: World, instance: Instance) -> str:
    asker = instance.asker_agent_id
    if asker is None:
        return "anonymous"
    return "known" if _knows(world, instance.ego_agent_id, asker, world.asked_until(instance)) else "stranger"


def auc_of_feature(values: Sequence[object], positive: Sequence[bool]) -> float:
    """Return the area under the ROC curve of the best predictor from one discrete feature: its share of positives.

    Both classes must occur. 0.5 is chance.
    """
    counts: defaultdict[object, list[int]] = defaultdict(lambda: [0, 0])
    for value, is_positive in zip(values, positive, strict=True):
        counts[value][int(is_positive)] += 1
    total_negative = sum(negative for negative, _ in counts.values())
    total_positive = sum(hits for _, hits in counts.values())
    below, area = 0, 0.0
    for negative, hits in sorted(counts.values(), key=lambda pair: pair[1] / sum(pair)):
        area += hits * (below + negative / 2)
        below += negative
    return area / (total_negative * total_positive)
