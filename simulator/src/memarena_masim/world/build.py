"""Builds the world of a seed: people, places, groups, social graph."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from typing import Any

from memarena_masim.config import WorldConfig
from memarena_masim.errors import MasimError
from memarena_masim.pack import PackHalf
from memarena_masim.phrases.library import folder_of, library
from memarena_masim.rng import Stream
from memarena_masim.toml_text import parsed
from memarena_masim.world.graph import build_graph
from memarena_masim.world.model import Group, Person, Place, World

_RELATIONS = ("close friend", "friend", "acquaintance")
_OWN_PACE, _OWN_FILLERS = 0.04, 0.04
"""Maximum deviation of a person's pace and fillers from those of their style and traits."""
RELATION_KINDS = {
    "family": "family",
    "colleague": "colleague",
    "close friend": "friend",
    "friend": "friend",
    "acquaintance": "acquaintance",
    "passing acquaintance": "acquaintance",
}
"""Kind of relation in talk, by the value of ``relation``: close friends talk like friends."""


@cache
def pools(pack: PackHalf) -> dict[str, Any]:
    """Read the pools from which people and places are drawn (``world/people.toml``)."""
    try:
        return parsed((folder_of(pack) / "world" / "people.toml").read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise MasimError(f"world/people.toml: {error}") from error


def build_world(config: WorldConfig) -> World:
    """Build the world before its first day."""
    places = _places(config)
    people = _people(config, places)
    ids = tuple(person.agent_id for person in people)
    edges = build_graph(ids, Stream(config.key, "graph"))
    return World(people, places, _groups(config, people, places), edges)


def strangers(config: WorldConfig, world: World) -> list[str]:
    """Return agent ids of invented people who are not part of the world, so that no person has ever met them."""
    pool = pools(config.words)
    stream = Stream(config.key, "strangers")
    firsts = {person.first_name for person in world.people}
    ids = {person.agent_id for person in world.people}
    free = [name for name in pool["first_names"] if name not in firsts] or pool["first_names"]
    names: dict[str, None] = {}
    while len(names) < max(4, config.agents // 5):
        agent_id = f"{stream.pick(free)}_{stream.pick(pool['last_names'])}".lower()
        if agent_id not in ids:
            names[agent_id] = None
    return list(names)


def relation(world: World, ego: str, other: str) -> str:
    """Return the relation of ``other`` to ``ego``: a key of RELATION_KINDS."""
    for group in world.groups:
        if ego in group.members and other in group.members and group.kind in ("family", "team"):
            return "family" if group.kind == "family" else "colleague"
    layer = world.edge(ego, other).layer
    return _RELATIONS[layer] if layer >= 0 else "passing acquaintance"


def _places(config: WorldConfig) -> dict[str, Place]:
    stream, pool = Stream(config.key, "places"), pools(config.words)["places"]
    occupations = pools(config.words)["occupations"]
    # third places are public: neither home nor work
    third = [Place(f"third_{n}", row[0], row[1], row[2], row[3], "public") for n, row in enumerate(pool["third"])]
    work = [Place(f"work_{key}", f"the {name}", "workplace", 6, 22, "semi") for key, name in occupations.items()]
    homes = [
        Place(f"home_{n}", f"a home in {stream.pick(pool['districts'])}", "home", 0, 24, "private")
        for n in range(config.agents)
    ]
    return {location.location_id: location for location in (*third, *work, *homes)}


def _people(config: WorldConfig, places: dict[str, Place]) -> tuple[Person, ...]:
    """Return the people of a world; each next one moves into a new home with chance 0.7, else lives with the last."""
    pool = pools(config.words)
    first = Stream(config.key, "first names").shuffled(pool["first_names"])
    last = Stream(config.key, "last names").shuffled(pool["last_names"])
    if config.agents > len(first) * len(last):
        raise MasimError(f"--agents {config.agents}: at most {len(first) * len(last)} people have names of their own")
    people, home = [], 0
    for number in range(config.agents):
        stream = Stream(config.key, "person", number)
        family_name = last[(number + number // len(first)) % len(last)]
        name = f"{first[number % len(first)]} {family_name}"
        if number and stream.chance(0.7):
            home += 1
        people.append(_person(name, f"home_{home}", stream, config.words))
    return tuple(people)


def _person(name: str, home_id: str, stream: Stream, pack: PackHalf) -> Person:
    """Draw a person: occupation, interests, hours of the day, and manner of speaking."""
    pool = pools(pack)
    occupation = stream.pick(sorted(pool["occupations"]))
    hobbies = tuple(stream.sample(pool["hobbies"], 3))
    concerns = tuple(stream.sample(pool["concerns"], 2))
    wake = stream.pick((5.5, 6.0, 6.5, 7.0, 7.5))
    start = stream.pick((7.0, 8.0, 8.5, 9.0, 10.0, 12.0))
    heads = {f"hobby:{hobby}" for hobby in hobbies} | {f"concern:{concern}" for concern in concerns}
    heads.add(f"occupation:{occupation}")
    age, traits = stream.between(19, 78), tuple(stream.sample(sorted(pool["traits"]), 2))
    style = stream.pick(sorted(pool["styles"]))
    pace, fillers, asking = _manner(pool, stream, style, traits)
    topics = [key for key, topic in library(pack).topics.items() if heads & set(topic.heads)]
    return Person(
        agent_id=name.lower().replace(" ", "_"),
        name=name,
        age=age,
        occupation=occupation,
        traits=traits,
        style=style,
        values=tuple(stream.sample(pool["values"], 2)),
        concerns=concerns,
        hobbies=hobbies,
        home_id=home_id,
        work_id=f"work_{occupation}",
        wake=wake,
        sleep=min(24.0, wake + stream.pick((15.5, 16.0, 16.5, 17.0))),
        work_start=start,
        work_end=start + 8,
        days_off=tuple(sorted(stream.sample(range(7), 2))) if stream.chance(0.25) else (5, 6),
        topics=tuple(topics),
        leaning=stream.below(1 << 20),
        pace=pace,
        fillers=fillers,
        asking=asking,
    )


def _manner(pool: dict[str, Any], stream: Stream, style: str, traits: tuple[str, ...]) -> tuple[float, float, float]:
    """Return pace, fillers and asking of a person: by style and traits, with a small random deviation."""
    rows = [pool["styles"][style], *(pool["traits"][trait] for trait in traits)]
    pace, fillers, asking = (sum(column) for column in zip(*rows, strict=True))
    pace += _OWN_PACE * (2 * stream.unit() - 1)
    fillers += _OWN_FILLERS * (2 * stream.unit() - 1)
    return pace, max(0.0, fillers), max(0.0, asking)


def _groups(config: WorldConfig, people: tuple[Person, ...], places: dict[str, Place]) -> tuple[Group, ...]:
    """Return the families, teams and clubs of a world; families and teams have two or more members."""
    stream, groups, pool = Stream(config.key, "groups"), [], pools(config.words)["places"]
    homes: dict[str, list[Person]] = {}
    teams: dict[str, list[Person]] = {}
    for person in people:
        homes.setdefault(person.home_id, []).append(person)
        teams.setdefault(person.work_id, []).append(person)
    for home_id, members in homes.items():
        if len(members) > 1:
            name = f"household of {members[0].name}"
            groups.append(_group(f"family_{home_id}", name, "family", members, home_id, None, ("adult",), stream))
    for work_id, members in teams.items():
        if len(members) > 1:
            name = f"team at {places[work_id].name}"
            groups.append(_group(f"team_{work_id}", name, "team", members, work_id, None, ("lead", "member"), stream))
    third = sorted(key for key in places if key.startswith("third"))
    clubs = stream.sample(pool["groups"], max(2, min(14, config.agents // 5)))
    for number, club in enumerate(clubs):
        members = stream.sample(people, min(len(people), stream.between(4, 8)))
        meets = (stream.below(7), stream.between(18, 20))
        location = stream.pick(third)
        titles = (*stream.sample(pool["posts"], _POSTS), "member")
        groups.append(_group(f"club_{number}", club, "club", members, location, meets, titles, stream))
    return tuple(groups)


_POSTS = 5
"""Number of posts of a club."""


def _group(
    group_id: str,
    name: str,
    kind: str,
    members: list[Person],
    place_id: str,
    meets: tuple[int, int] | None,
    titles: Sequence[str],
    stream: Stream,
) -> Group:
    """Return a group whose members get one of the ``titles`` each, in random order; all others get the last."""
    shuffled = stream.shuffled([person.agent_id for person in members])
    roles = tuple((agent, titles[min(index, len(titles) - 1)]) for index, agent in enumerate(shuffled))
    ids = tuple(sorted(person.agent_id for person in members))
    return Group(group_id, name, kind, ids, roles, place_id, meets)
