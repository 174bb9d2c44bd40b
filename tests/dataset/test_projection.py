"""Tests the projection: an ego gets exactly its own sessions and the events visible to it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from memarena_dataset.io.reading import open_dataset

AGENTS = ("ada", "bo", "cy", "assistant_ada")
SOMEBODY = st.lists(st.sampled_from(AGENTS), min_size=1, max_size=4, unique=True)
TIMES = st.floats(0, 4.99, allow_nan=False)


@settings(max_examples=40)
@given(
    sessions=st.lists(st.tuples(SOMEBODY, TIMES), min_size=1, max_size=12),
    events=st.lists(st.tuples(st.lists(st.sampled_from(AGENTS), max_size=4), TIMES), max_size=8),
)
def test_an_ego_sees_its_sessions_and_the_events_whose_mask_holds_it(
    sessions: list[tuple[list[str], float]], events: list[tuple[list[str], float]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        with (path / "corpus_sessions.jsonl").open("w") as stream:
            for number, (participants, start) in enumerate(sessions):
                turn = {"turn_id": f"t{number}", "speaker_id": participants[0], "text": "Hello.", "timestamp": start}
                row = {"session_id": f"s{number}", "participants": participants, "turns": [turn]}
                stream.write(json.dumps({**row, "start_time": start, "end_time": start}) + "\n")
        with (path / "events.jsonl").open("w") as stream:
            for number, (mask, time) in enumerate(events):
                event = {"event_id": f"e{number}", "timestamp": time, "content": "Rain.", "visibility_mask": mask}
                stream.write(json.dumps(event) + "\n")
        with open_dataset(path) as dataset:
            for ego in AGENTS:
                days = range(dataset.day_count)
                visible_sessions = [session for day in days for session in dataset.day_sessions(ego, day)]
                assert [s.session_id for s in visible_sessions] == [
                    name
                    for _, name in sorted((start, f"s{n}") for n, (who, start) in enumerate(sessions) if ego in who)
                ]
                assert all(session.day == day for day in days for session in dataset.day_sessions(ego, day))
                visible_events = [event for day in days for event in dataset.day_events(ego, day)]
                assert [e.event_id for e in visible_events] == [
                    name for _, name in sorted((time, f"e{n}") for n, (mask, time) in enumerate(events) if ego in mask)
                ]
