"""The paper's tables, each by one command: the sweeps and studies that it needs, then the paper's figures and ours."""
