"""What is read from a model's graph, once: its likelihoods, their parameters and where records enter. No value of a record is read.

Begin at ``reader``. It goes through ``model_graph``, ``observed``, ``declared`` and ``model_arrays``; for every observed variable through
``likelihood_reader``, with ``reduction`` and ``record_axes``; and through ``survivors`` and ``problems``.
"""
