"""Where the cells of a sweep are carried out: processes of this machine, or a Ray cluster."""
