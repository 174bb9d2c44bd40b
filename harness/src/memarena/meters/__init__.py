"""Measures power, temperature, load and memory of the machine during a run, and the energy of its phases.

``readings`` and ``sources`` define meters; ``sampler`` reads meters in its own process, which ``sampling`` starts and
stops; ``samples`` is the file between them; ``integrals`` and ``energy`` compute joules from samples, or the reason why
there are none.
"""
