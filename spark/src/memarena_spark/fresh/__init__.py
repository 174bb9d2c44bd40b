"""Fresh worlds: a data set whose seed could not be known when the backends of a run were fixed."""
