"""D6: who may be told what. Chosen so that neither asker, nor topic, nor the wording alone predicts the action.

Items come crossed: the same fact asked by two people who differ in right, or the same asker after two facts that do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain

from memarena_dataset.model import Family
from memarena_dataset.permission_rules import Action

from memarena_masim.questions.book import Book, Draft, typed
from memarena_masim.questions.permission_cases import Case, all_cases, self_cases
from memarena_masim.rng import Stream

DENY_SHARE = 0.4
"""80 of 200."""
SELF_SHARE = 0.06
"""Of all items: the owner's own questions and the subject's, ALLOW by rule 1 and outside of F1_PU."""
_WEIGHTS = {"known": 3, "stranger": 1, "anonymous": 1}
"""How often who asks, in proportion."""
_BY_FACT_SHARE = 0.6
"""Of the pairs: those chosen because their fact is asked by two people who differ in right."""
_PER_FACT = 3
_LOOKED_THROUGH = 200
"""So many open DENY of a group are looked through for one that an ALLOW crosses."""

Group = tuple[str, str]


def permission(book: Book, wanted: int, taken: set[tuple[str, str]]) -> list[Draft]:
    """Drafts of permission questions, ``wanted`` of them if the world has them; marks what they use in ``taken``."""
    stream = Stream(book.config.key, "permission")
    own = round(wanted * SELF_SHARE)
    deny = round(wanted * DENY_SHARE)
    chosen = _Choice(list(all_cases(book, stream, taken, wanted)), stream).choose(wanted - deny - own, deny)
    taken.update(case.about for case in chosen)
    for case in self_cases(book, stream, taken):
        if own == 0:
            break
        if case.about not in taken:
            chosen.append(case)
            taken.add(case.about)
            own -= 1
    return [_draft(book, case) for case in chosen]


class _Choice:
    """Chooses cases group by group, in pairs of a DENY and an ALLOW that cross each other where there are any."""

    def __init__(self, cases: list[Case], stream: Stream) -> None:
        self._stream = stream
        self._open: dict[tuple[Group, Action], list[Case]] = defaultdict(list)
        self._of_fact: dict[tuple[object, ...], list[Case]] = defaultdict(list)
        self._by_asker: dict[tuple[object, ...], list[Case]] = defaultdict(list)
        self._of_asker: dict[tuple[object, ...], list[Case]] = defaultdict(list)
        for case in cases:
            self._open[case.group, case.action].append(case)
            self._of_fact[case.group, case.action, case.about].append(case)
            self._of_asker[case.group, case.action, case.ego, case.asker].append(case)
            self._by_asker[case.action, case.ego, case.asker].append(case)
            self._by_asker[case.action, case.ego, case.asker, case.category].append(case)
        self._per_fact: Counter[tuple[str, str]] = Counter()
        self._used: set[tuple[str, str, str | None]] = set()
        self._facts: dict[Action, dict[tuple[str, str], list[Case]]] = {"disclose": {}, "withhold": {}}
        for case in cases:
            self._facts[case.action].setdefault(case.about, []).append(case)
        self._kinds: Counter[str] = Counter()
        self._categories: Counter[str] = Counter()
        self._asked: set[tuple[Action, tuple[str, str]]] = set()
        self._scenarios: Counter[str] = Counter()
        self.chosen: list[Case] = []

    def choose(self, allow: int, deny: int) -> list[Case]:
        """``allow`` and ``deny`` cases, in equal proportion in every group as nearly as the numbers go."""
        pairs = self._pairs(min(allow, deny))
        pairs += self._loose(min(allow, deny) - pairs)
        ratio = allow / deny if deny else 0.0
        rest = round(pairs * ratio) - pairs
        while rest > 0 and self._one_more(ratio):
            rest -= 1
        return self.chosen

    def _pairs(self, wanted: int) -> int:
        """Pairs of one DENY and one ALLOW of the same group; how many were found.

        First one of each scenario, then by facts that are crossed themselves, two pairs at a time, then other crossed
        pairs, then any.
        """
        found = self._one_of_each(wanted)
        facts = self._stream.shuffled(sorted(set(self._facts["disclose"]) & set(self._facts["withhold"])))
        for about in facts:
            if found + 2 <= wanted * _BY_FACT_SHARE and self._quad(about):
                found += 2
        groups = self._stream.shuffled(sorted({group for group, action in self._open if action == "withhold"}))
        for crossed in (True, False):
            while found < wanted:
                ranked = sorted(groups, key=self._share_so_far)
                if not any(self._pair(group, crossed, by_fact=found % 2 == 0) for group in ranked):
                    break
                found += 1
        return found

    def _one_of_each(self, wanted: int) -> int:
        """A crossed pair for every scenario that the world has: small ones have few cases of friends."""
        found = 0
        cases = [case for of_group in self._open.values() for case in of_group]
        for scenario in sorted({_scenario(case) for case in cases}):
            if self._scenarios[scenario] or found == wanted:
                continue
            mine = [case for case in cases if _scenario(case) == scenario and self._free(case)]
            of_group = ((one, other) for one in mine if (other := self._partner(one, by_fact=True)))
            of_asker = ((one, other) for one in mine if (other := self._same_asker(one)))
            pair = next(chain(of_group, of_asker), None)
            if pair is not None:
                self._take(pair[0])
                self._take(pair[1])
                found += 1
        return found

    def _loose(self, wanted: int) -> int:
        """Pairs of any DENY and any ALLOW, for worlds too small to balance groups; those of one kind first."""
        found = 0
        for same_kind in (True, False):
            for denied in self._all("withhold"):
                if found >= wanted:
                    return found
                allowed = (case for case in self._all("disclose") if not same_kind or case.kind == denied.kind)
                partner = next(allowed, None) if self._free(denied) else None
                if partner is not None:
                    self._take(denied)
                    self._take(partner)
                    found += 1
        return found

    def _all(self, action: Action) -> list[Case]:
        return [case for (_, of), cases in self._open.items() if of == action for case in cases if self._free(case)]

    def _share_so_far(self, group: Group) -> float:
        """How much of its due the kind of asker of a group has; groups of the category count, too."""
        return self._kinds[_kind_of(group)] / _WEIGHTS[_kind_of(group)] + self._categories[group[1]]

    def _quad(self, about: tuple[str, str]) -> bool:
        """Take an ALLOW and a DENY of one fact, each with a case of its own asker that has the other action."""
        for denied in sorted(self._facts["withhold"][about], key=lambda case: self._share_so_far(case.group)):
            partner = self._same_asker(denied) if self._free(denied) else None
            if partner is None or partner.about == about:
                continue
            for allowed in sorted(self._facts["disclose"][about], key=lambda case: self._share_so_far(case.group)):
                if not self._free(allowed) or allowed.group == denied.group:
                    continue
                other = self._same_asker(allowed)
                if other is not None and len({case.about for case in (denied, partner, other)}) == 3:
                    for case in (denied, partner, allowed, other):
                        self._take(case)
                    return True
        return False

    def _pair(self, group: Group, crossed: bool, by_fact: bool) -> bool:
        """Take a DENY with an ALLOW of the group; ``crossed`` ones share the fact or the asker."""
        denied = self._open[group, "withhold"]
        denied[:] = [case for case in denied if self._free(case)]
        allowed_only = {about for action, about in self._asked if action == "disclose"}
        again = [case for about in sorted(allowed_only) for case in self._of_fact[group, "withhold", about]]
        ranked = sorted(
            [*(case for case in again if self._free(case)), *denied[:_LOOKED_THROUGH]],
            key=lambda case: (
                not self._crosses_fact(case),
                self._scenarios[_scenario(case)],
                self._per_fact[case.about],
            ),
        )
        for case in ranked:
            partner = self._partner(case, by_fact) if crossed else self._any(group, "disclose")
            if partner is not None:
                self._take(case)
                self._take(partner)
                return True
        return False

    def _partner(self, case: Case, by_fact: bool) -> Case | None:
        """A free case of the other action that has the fact or the asker of ``case``."""
        other: Action = "withhold" if case.action == "disclose" else "disclose"
        of_fact = self._of_fact[case.group, other, case.about]
        of_asker = self._of_asker[case.group, other, case.ego, case.asker]
        for found in (of_fact, of_asker) if by_fact else (of_asker, of_fact):
            free = [one for one in found if self._free(one)]
            if free:
                return next((one for one in free if self._crosses_fact(one)), free[0])
        return None

    def _same_asker(self, case: Case) -> Case | None:
        """A free case of the other action with the same asker, of the same category if there is one."""
        other: Action = "withhold" if case.action == "disclose" else "disclose"
        of_category = self._by_asker[other, case.ego, case.asker, case.category]
        anywhere = self._by_asker[other, case.ego, case.asker]
        return next((one for one in chain(of_category, anywhere) if self._free(one)), None)

    def _crosses_fact(self, case: Case) -> bool:
        """Whether the fact is asked after already, by somebody who differs in right."""
        other: Action = "withhold" if case.action == "disclose" else "disclose"
        return (other, case.about) in self._asked and (case.action, case.about) not in self._asked

    def _any(self, group: Group, action: Action) -> Case | None:
        return next((case for case in self._open[group, action] if self._free(case)), None)

    def _one_more(self, ratio: float) -> bool:
        """One more ALLOW, where kind and category have fewest for their DENY; one that crosses a DENY if possible."""
        lacks: dict[object, float] = defaultdict(float)
        for case in self.chosen:
            for part in (*case.group, case.group):
                lacks[part] += ratio if case.action == "withhold" else -1
        groups = sorted(
            {case.group for case in self.chosen},
            key=lambda group: (-lacks[group[0]] - lacks[group[1]], -lacks[group], group),
        )
        for crossed in (True, False):
            for group in groups:
                denied = [case for case in self.chosen if case.group == group and case.action == "withhold"]
                partners = (self._partner(case, by_fact=True) for case in denied)
                found = next((one for one in partners if one), None) if crossed else self._any(group, "disclose")
                if found is not None:
                    self._take(found)
                    return True
        return False

    def _free(self, case: Case) -> bool:
        return self._per_fact[case.about] < _PER_FACT and (*case.about, case.asker) not in self._used

    def _take(self, case: Case) -> None:
        self.chosen.append(case)
        self._per_fact[case.about] += 1
        self._asked.add((case.action, case.about))
        self._kinds[_kind_of(case.group)] += 1
        self._categories[case.category] += 1
        self._used.add((*case.about, case.asker))
        self._scenarios[_scenario(case)] += 1


def _kind_of(group: Group) -> str:
    return group[0] if group[0] in _WEIGHTS else "known"


def _draft(book: Book, case: Case) -> Draft:
    fact = case.fact
    evidence = (case.stated,) if case.tie is None else (case.stated, case.tie)
    truth: dict[str, object] = {
        "query_agent": case.asker,
        "target_agent": fact.subject,
        "fact": fact.value.text,
        "permission_level": fact.level,
        "expected_disclosure": case.action == "disclose",
        "expected_action": case.action,
        "autonomous_privacy": bool(fact.sensitive) and fact.level is None,
        "anonymous_querier": case.asker is None,
        "known_requester": case.kind == "known",
        "self_item": case.kind == "self",
        "values": typed(fact.value.value),
    }
    if fact.sensitive:
        truth["sensitive_category"] = fact.sensitive
    if case.tie is not None:
        truth["friendship"] = {
            "friends": case.tie.value.text == "friends",
            "session_id": case.tie.session_id,
            "turn_id": case.tie.turn_id,
        }
    query = book.ask(case.ego, fact, case.asker)
    draft = Draft(Family.PERMISSION, case.ego, query, truth, evidence, fact.fact_id, asker=case.asker)
    draft.uses, draft.last_day = (fact.fact_id,), case.earliest
    draft.wanted = book.wanted("detail", case.ego, fact, case.asker)
    draft.difficulty = {1: "easy", 3: "easy", 5: "medium", 6: "medium"}.get(case.rule, "hard")
    draft.extra |= {"rule": case.rule, "scenario": _scenario(case), "interference": book.interference(case.ego, fact)}
    if case.relation:
        draft.extra["relationship"] = case.relation
    return draft


def _scenario(case: Case) -> str:
    """The scenario that an item belongs to: the first that fits."""
    if case.kind == "self":
        return "self"
    if case.fact.sensitive and case.fact.level is None:
        return "autonomous"
    if case.kind == "anonymous":
        return "anonymous"
    if case.fact.level == "friends_only":
        return "friends_only"
    return "explicit" if case.fact.level is not None else "known_requester"
