"""Makes and verifies bundles: folders with the facts of a run, figures derived from them, hashes and a signature."""
