"""Draws one ego's life of any length from a seed, with words distributed as in speech."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto.digest import DayDigest

NAMESPACE = "n-bench"
DAYS = 15
SESSIONS_A_DAY = 28
TURNS_A_SESSION = 10
WORDS_A_TURN = 55
_VOCABULARY = 15_000
_START = datetime(2025, 1, 1, 8, tzinfo=UTC)
_PLACES = ("Luna Café", "the harbour", "Oak Street library", "home", "the office")
_GROUPS = ("Book club", "Tuesday runners", "")
_OWNER = pb.Participant(participant_id="p0", display_name="Maya Chen", role=pb.PARTICIPANT_ROLE_OWNER)
_OTHERS = [
    pb.Participant(participant_id=f"p{n}", display_name=name, role=pb.PARTICIPANT_ROLE_PERSON)
    for n, name in enumerate(("Omar Haddad", "Ines Duarte", "Kofi Boateng", "Lena Vogel"), start=1)
]


class Words:
    """Draws words by a Zipf-Mandelbrot law, which fits speech: the commonest is in most turns, most are rare."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        weights = 1.0 / (np.arange(_VOCABULARY) + 2.7) ** 1.07
        self._cumulated = np.cumsum(weights / weights.sum())

    def some(self, mean: int) -> str:
        """Draw about ``mean`` words, at least three."""
        count = max(3, int(self._rng.gamma(3.0, mean / 3.0)))
        ranks = np.searchsorted(self._cumulated, self._rng.random(count))
        return " ".join(f"w{rank}" for rank in ranks)


def days(seed: int) -> Iterator[list[pb.IngestRequest]]:
    """Yield all frames of each day: 15 days of 280 turns, 4,200 in all, about 55 words each."""
    words = Words(seed)
    for day in range(DAYS):
        header = pb.DayHeader(
            namespace=NAMESPACE,
            day_index=day,
            date=(_START + timedelta(days=day)).date().isoformat(),
            batch_id=f"b{day}",
            owner=_OWNER,
        )
        frames = [pb.IngestRequest(header=header)]
        frames += [pb.IngestRequest(session=_session(words, day, number)) for number in range(SESSIONS_A_DAY)]
        yield sealed(frames)


def sealed(frames: Sequence[pb.IngestRequest]) -> list[pb.IngestRequest]:
    """Return the frames followed by their trailer."""
    digest = DayDigest()
    for frame in frames:
        digest.add(frame)
    return [*frames, pb.IngestRequest(trailer=digest.trailer())]


def _session(words: Words, day: int, number: int) -> pb.Session:
    """Return a session of the owner with another person."""
    start = _START + timedelta(days=day, minutes=30 * number)
    speakers = (_OWNER, _OTHERS[number % len(_OTHERS)])
    return pb.Session(
        session_id=f"s{day}.{number}",
        participants=speakers,
        started_at=start.isoformat(),
        ended_at=(start + timedelta(minutes=TURNS_A_SESSION)).isoformat(),
        modality=("face_to_face", "text_message", "voice_message")[number % 3],
        place=_PLACES[number % len(_PLACES)],
        group=_GROUPS[number % len(_GROUPS)],
        turns=[
            pb.Turn(
                turn_id=f"t{day}.{number}.{turn}",
                speaker_id=speakers[turn % 2].participant_id,
                text=words.some(WORDS_A_TURN),
                said_at=(start + timedelta(minutes=turn)).isoformat(),
            )
            for turn in range(TURNS_A_SESSION)
        ],
    )


def questions(seed: int, count: int) -> list[str]:
    """Return questions of about ten words; some end with names and places, as people's questions do."""
    words = Words(seed)
    tails = ("Omar", "at Luna Café", "in January", "with the book club", "")
    return [f"What did Maya say {words.some(8)} {tails[n % len(tails)]}?" for n in range(count)]
