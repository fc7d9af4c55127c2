"""What publishers say they did to their numbers, one function each, with the source and the day on which it was read.

The laws are theirs to change: compare with the page that the source names before you rely on one. A function gives a ``Codebook``, for
``pymc_dp.published``.

Examples
--------
>>> print(pmdp.codebooks.rr3())
rounded at random to a multiple of 3 (Stats NZ, fixed random rounding to base 3; read 2026-11)
"""

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.events import Clipped, Rounded, Threshold
from pymc_dp.publications.noises import DiscreteGaussian, DiscreteLaplace, GaussianNoise, LaplaceNoise
from pymc_dp.publications.publication import Codebook
from pymc_dp.publications.ratios import NoisyRatio
from pymc_dp.publications.tables import RoundedToBase

PAGEVIEWS = "Wikimedia, differentially private pageviews by country and day; read 2026-11"
DEVICE_DAY = "one device's pageviews of one day, at most 10 pages; epsilon and delta as Wikimedia states them"
TIERS = {"low": (18.23, 90), "medium": (90.05, 550), "high": (179.84, 1000)}
"""By the risk of a country: the standard deviation of the noise, and the least number that is published."""


def rr3() -> Codebook:
    """Random rounding to base 3, as Stats NZ and others do it: to the nearer multiple of 3 with probability 2/3."""
    return Codebook(RoundedToBase(3), "Stats NZ, fixed random rounding to base 3; read 2026-11")


def pageviews_to_2017(absent: str = "") -> Codebook:
    """Wikimedia pageviews of days up to 2017-02-08. ``absent``: see ``Threshold``."""
    return Codebook([DiscreteLaplace(300), Threshold(3500, absent=absent)], PAGEVIEWS, DEVICE_DAY)


def pageviews_to_2023(absent: str = "") -> Codebook:
    """Wikimedia pageviews of days from 2017-02-09 to 2023-02-05. ``absent``: see ``Threshold``."""
    return Codebook([DiscreteLaplace(30), Threshold(450, absent=absent)], PAGEVIEWS, DEVICE_DAY)


def pageviews(risk: str = "", absent: str = "") -> Codebook:
    """Wikimedia pageviews of days from 2023-02-06 on. ``risk`` of the country: "low", "medium" or "high". ``absent``: see ``Threshold``."""
    if risk not in TIERS:
        raise Refusal('The risk of a country is "low", "medium" or "high". Write pageviews("low", absent="unlisted").')
    scale, lowest = TIERS[risk]
    return Codebook([DiscreteGaussian(scale), Threshold(lowest, absent=absent)], PAGEVIEWS, DEVICE_DAY)


def broadband(of: object) -> Codebook:
    """Broadband usage by US postal code of 2020. ``of``: devices of every code; not published, but error ranges say roughly how many."""
    return Codebook(
        [NoisyRatio(LaplaceNoise.from_epsilon(0.1), of=of), Clipped(0, 1), Rounded(0.001)],
        "Microsoft, US broadband usage percentages, and arXiv 2103.14035; read 2026-11",
        "epsilon 0.1 for each of the two counts, as Microsoft states it",
    )


def census_noisy_measurements(variance: object) -> Codebook:
    """Noisy measurement files of the 2020 US Census (PL94, DHC). ``variance``: as the file has it beside every number."""
    return Codebook(
        DiscreteGaussian.from_variance(variance), "US Census Bureau, 2020 noisy measurement files; read 2026-11", "rho of the product"
    )


def census_estimates(std_dev: object) -> Codebook:
    """Census estimates of 2025 by generalised least squares. ``std_dev``: as the file has it beside every estimate."""
    return Codebook(GaussianNoise(std_dev), "US Census Bureau, 2020 GLS estimates (2025); read 2026-11", "rho of the product")
