"""Certifies runs: refuses to start on an unfit node, and bundles results so that anyone can check them offline.

``profiles`` and ``plans`` define what a node must be and what is run on it; all facts of the machine come by ``node``;
``preflight``, ``canary``, ``thermal`` and ``locking`` guard a run, ``running`` executes it; ``bundle`` makes, verifies
and checks bundles; ``audit`` repeats a share of a run's questions.
"""
