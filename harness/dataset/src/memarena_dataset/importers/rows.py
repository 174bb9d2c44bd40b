"""Builds the rows of sessions and questions that importers write to a data set folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memarena_dataset.gold import Gold
from memarena_dataset.importers.times import turn_times
from memarena_dataset.io.writing import ground_truth_of
from memarena_dataset.model import Family


def session_row(
    session_id: str, participants: Sequence[str], start: float, turns: Sequence[Mapping[str, Any]], **more: Any
) -> dict[str, Any]:
    """Return a session's row with estimated times. ``turns`` and ``more`` are those of :func:`timed_session_row`."""
    return timed_session_row(session_id, participants, turn_times(start, [turn["text"] for turn in turns]), turns, more)


def timed_session_row(
    session_id: str,
    participants: Sequence[str],
    times: Sequence[float],
    turns: Sequence[Mapping[str, Any]],
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a session with known times as a row of the corpus.

    Args:
        session_id: its id.
        participants: ids of all agents in it.
        times: of each turn and of the end, in simulated days, as :func:`turn_times` returns them.
        turns: with ``turn_id``, ``speaker_id``, ``text`` and, if there is any, ``metadata``.
        more: further fields of the row, such as ``modality``.
    """
    others = {speaker: [agent for agent in participants if agent != speaker] for speaker in participants}
    rows = [
        {
            "turn_id": turn["turn_id"],
            "session_id": session_id,
            "speaker_id": turn["speaker_id"],
            "listener_id": others[turn["speaker_id"]][0] if len(participants) == 2 else None,
            "text": turn["text"],
            "timestamp": time,
            "metadata": turn.get("metadata", {}),
        }
        for turn, time in zip(turns, times, strict=False)  # times has the end too, which is of no turn
    ]
    return {
        "session_id": session_id,
        "participants": list(participants),
        "turns": rows,
        "start_time": times[0],
        "end_time": times[-1],
        **more,
    }


def instance_row(
    instance_id: str,
    family: Family,
    query: str,
    gold: Gold,
    *,
    ego: str,
    sessions: Sequence[str],
    turns: Sequence[str],
    metadata: Mapping[str, Any],
    asker: str | None = None,
) -> dict[str, Any]:
    """Return a question to the ego's assistant as a row of its family's file.

    Args:
        instance_id: its id.
        family: the kind of question, which decides its file and the form of its gold.
        query: its words.
        gold: the right answer.
        ego: the person whose memory is asked.
        sessions: ids of the evidence sessions.
        turns: ids of the evidence turns.
        metadata: further fields, such as ``query_timestamp`` in simulated days.
        asker: agent id of the person who asks; None: the ego.
    """
    tiers = {0: "full_ego", 1: "single_session"}
    return {
        "instance_id": instance_id,
        "dimension": family.value,
        "query": query,
        "ground_truth": ground_truth_of(family, gold),
        "asker_agent_id": asker or ego,
        "answerer_agent_id": f"assistant_{ego}",
        "ego_agent_id": ego,
        "evidence_session_ids": list(sessions),
        "context_tier": tiers.get(len(sessions), "cross_session"),
        "metadata": {"evidence_turn_ids": list(turns), **metadata},
    }
