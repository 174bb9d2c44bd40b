"""Runs ``python -m memarena``, which is the same as the command ``memarena``."""

from memarena.cli.main import main

main()
