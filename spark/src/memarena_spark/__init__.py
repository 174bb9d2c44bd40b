"""Certifies runs: refuses to start on an unfit node, and bundles results so that anyone can check them offline.

``profiles`` and ``plans`` define what a node must be and what is run on it; all facts of the machine come through
``node``, which ``machine`` implements. ``preflight`` with ``checks``, ``thermal`` and ``locking`` guard a run,
``running`` executes it, ``watching`` observes its readers. ``announcing`` and ``fresh`` fix a run and its world
beforehand. ``bundle`` makes and verifies bundles; ``audit`` asks a share of a bundle's questions again.
"""
