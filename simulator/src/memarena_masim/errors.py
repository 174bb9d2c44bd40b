"""The error type of MaSim."""


class MasimError(Exception):
    """What a user can mend: a flag, a file, a phrase bank. The message is one line that names it."""
