"""Fresh worlds: a data set whose seed nobody could know when the backends of a run were fixed."""
