"""Chains that pay at every update: Gibbs sampling, and annealing on top of it."""
