"""The law of an exact statistic with noise on it, as graphs that PyMC differentiates and loops that numba compiles.

No likelihood is known here, and no record.
"""
