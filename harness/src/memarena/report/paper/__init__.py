"""The paper's figures next to those of a run."""
