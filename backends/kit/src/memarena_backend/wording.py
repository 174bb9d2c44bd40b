"""How the parts of a session are put into words; shared, so that backends differ in what they find and not in style."""

from __future__ import annotations

from memarena_backend.records import Session, Turn


def setting_in_words(session: Session) -> str:
    """Modality, place and group of a session, for example ``[face to face, at Luna Café, with Book club]``.

    Empty if nothing of it is known. The time is left out: an item's ``time`` carries it.
    """
    parts = []
    if session.modality:
        parts.append(session.modality.replace("_", " "))
    if session.place:
        parts.append(f"at {session.place}")
    if session.group:
        parts.append(f"with {session.group}")
    return f"[{', '.join(parts)}]" if parts else ""


def line_of(turn: Turn) -> str:
    """A turn as a line of a script: ``speaker: text``."""
    return f"{turn.speaker.display_name}: {turn.text}"
