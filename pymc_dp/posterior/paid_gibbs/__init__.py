"""Chains that pay at every update: Gibbs sampling (``sweeps``), and annealing on top of it (``annealed``).

``parts`` writes the log-likelihood in parts of which one record's share is known in integers, ``blocks`` says what is updated, and
``kernel`` holds the nouns of both. ``sensitivity`` is how far one record can move an update, ``costs`` what that costs. ``updates`` makes
one update, by the scores of its options; ``accept`` one that proposes a move; ``sites`` are latents that records read by an index.
"""
