"""Asking servers of models, the one way for memories, the harness and the simulator: bounded, nothing followed.

``door`` is for threads, ``sessions`` for event loops; ``chat`` reads what chat servers reply, ``normal_form`` puts it
into one form. The parts are imported where they are used: HTTP takes time and memory that only those pay who need it.
"""
