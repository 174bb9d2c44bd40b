"""Disguises of letters taken off: HTML entities, look-alikes of other alphabets, marks above and below letters."""

from __future__ import annotations

import html
import unicodedata

_ALPHABETS = (
    ("аеѕіјкӏмнорстухһԁԛԝѵүвгпшАВЕЅІЈКМНОРСТУХԀԚԜѴҮӀЗ", "aesijklmhopctyxhdqwvybrnwABESIJKMHOPCTYXDQWVYI3"),  # Cyrillic
    ("αεικνορτυχωγηΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aeikvoptuxwynABEZHIKMNOPTYX"),  # Greek
    ("ᴀʙᴄᴅᴇɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢıɑɡ", "abcdeghijklmnoprstuvwyziag"),  # small capitals and other Latin letters
)
LOOK_ALIKES = {ord(other): letter for others, latin in _ALPHABETS for other, letter in zip(others, latin, strict=True)}
"""Letters of other alphabets by the Latin letter that they look like, for ``str.translate``."""
_MOST_LAYERS = 3
"""How often an entity is resolved that hides another."""


def undisguised(text: str) -> str:
    """The text as a reader sees it, in plain Latin letters.

    Entities are resolved, full-width and other compatibility forms folded, look-alikes of other alphabets read as the
    Latin letters that they look like, combining marks dropped. Meant for looking for what may be hidden: text that is
    written in those alphabets is no text afterwards.
    """
    for _ in range(_MOST_LAYERS):
        plain = html.unescape(text)
        if plain == text:
            break
        text = plain
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFKD", text).translate(LOOK_ALIKES)
    return unicodedata.normalize("NFC", "".join(c for c in parts if not unicodedata.combining(c)))
