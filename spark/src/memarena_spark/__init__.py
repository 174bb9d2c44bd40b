"""Certification: a run that refuses to start on a sick node, and a bundle of its results that anyone can check offline.

``profiles`` and ``plans`` say what a node must be and what is run on it; ``node`` is the one door to the machine;
``preflight``, ``canary``, ``thermal`` and ``locking`` guard a run, ``running`` does it; ``bundle`` makes and verifies
what is published; ``audit`` asks a share of it again.
"""
