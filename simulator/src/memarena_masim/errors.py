"""The error type of MaSim."""

from memarena_dataset.errors import MemArenaError


class MasimError(MemArenaError):
    """What a user can mend: a flag, a file, a phrase bank. The message is one line that names it."""
