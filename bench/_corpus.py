"""Data sets of any size for the benchmarks: the example, repeated over more days with ids of their own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).resolve().parents[1] / "tests" / "data" / "example"
EXAMPLE_DAYS = 2


def enlarge(out: Path, factor: int) -> Path:
    """Write the example ``factor`` times over, copy n on days 2n and 2n + 1; questions stay those of the first copy.

    Each copy's turns name the copy, so that no two turns are alike. Returns ``out``.
    """
    shutil.copytree(EXAMPLE, out)
    sessions = _rows(EXAMPLE / "corpus_sessions.jsonl")
    egos: dict[str, list[str]] = {}
    with (out / "corpus_sessions.jsonl").open("w", encoding="utf-8") as corpus:
        for copy in range(factor):
            for session in sessions:
                row = _shifted(session, copy)
                corpus.write(json.dumps(row, ensure_ascii=False) + "\n")
                for participant in row["participants"]:
                    if not participant.startswith("assistant_"):
                        egos.setdefault(participant, []).append(row["session_id"])
    (out / "ego_session_map.json").write_text(json.dumps(egos), encoding="utf-8")
    return out


def _shifted(session: dict[str, Any], copy: int) -> dict[str, Any]:
    if copy == 0:
        return session
    days = copy * EXAMPLE_DAYS
    name = f"{session['session_id']}_c{copy}"
    turns = [
        {
            **turn,
            "turn_id": f"{turn['turn_id']}_c{copy}",
            "session_id": name,
            "timestamp": turn["timestamp"] + days,
            "text": f"{turn['text']} That was round {copy}.",
        }
        for turn in session["turns"]
    ]
    return {
        **session,
        "session_id": name,
        "turns": turns,
        "start_time": session["start_time"] + days,
        "end_time": session["end_time"] + days,
    }


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
