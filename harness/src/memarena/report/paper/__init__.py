"""The paper's figures beside those of a run."""
