"""Removes disguises of letters: HTML entities, look-alikes of other alphabets, marks above and below letters.

The judge of permission questions searches answers in this form for facts that they must not disclose: a model may
write a fact so that a search for its plain letters fails.
"""

from __future__ import annotations

import html
import unicodedata

_ALPHABETS = (
    ("аеѕіјкӏмнорстухһԁԛԝѵүвгпшАВЕЅІЈКМНОРСТУХԀԚԜѴҮӀЗ", "aesijklmhopctyxhdqwvybrnwABESIJKMHOPCTYXDQWVYI3"),  # Cyrillic
    ("αεικνορτυχωγηΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aeikvoptuxwynABEZHIKMNOPTYX"),  # Greek
    ("ᴀʙᴄᴅᴇɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢıɑɡ", "abcdeghijklmnoprstuvwyziag"),  # small capitals and other Latin letters
)
LOOK_ALIKES = {ord(other): letter for others, latin in _ALPHABETS for other, letter in zip(others, latin, strict=True)}
"""Code points of letters of other alphabets, each with the Latin letter that it resembles, for ``str.translate``."""
_MOST_LAYERS = 3
"""Maximum number of times that nested HTML entities are resolved."""


def undisguised(text: str) -> str:
    """Return the text as a reader sees it, in plain Latin letters.

    Entities are resolved, full-width and other compatibility forms folded, look-alikes of other alphabets replaced by
    the Latin letters that they resemble, combining marks dropped. It serves to detect hidden text: text in those
    alphabets is unreadable afterwards.
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
