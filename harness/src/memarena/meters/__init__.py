"""Power, temperature, load and memory of the machine while it is measured, and the energy of a phase.

``readings`` and ``sources`` say what a meter is; ``sampler`` reads meters in its own process and ``sampling``
starts and stops it; ``samples`` is the file between them; ``integrals`` and ``energy`` turn samples into joules, or
into the reason why there are none.
"""
