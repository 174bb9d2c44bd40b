"""``python -m memarena``: the same as the command ``memarena``."""

from memarena.cli.main import main

main()
