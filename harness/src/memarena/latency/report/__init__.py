"""Presents a latency study as tables, charts and files, by pure functions of its results.

Apart from ``memarena.latency``, which renders nothing, and from the commands, since certification makes the files of a
bundle's study again.
"""
