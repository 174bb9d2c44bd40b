"""Calls model servers for memories, the harness and the simulator, with limits on time and size, and no redirects.

``door`` is for threads, ``sessions`` for event loops; ``chat`` parses replies of chat servers, ``normal_form`` brings
them to a common form. Modules are imported where they are used, since HTTP clients take time and memory to import.
"""
