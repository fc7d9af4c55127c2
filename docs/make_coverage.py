"""The picture of the README, from measured coverage: `python docs/make_coverage.py` writes docs/coverage.png.

It shows four of the models of calibration.md whose plug-in intervals were measured at every epsilon, with 1,000 records.
"""

from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent
MODELS = {"bernoulli": "a share", "poisson": "a rate", "normal": "a mean", "linear_1": "a slope"}
PARAMETERS = {"bernoulli": "theta", "poisson": "mu", "normal": "mu", "linear_1": "b"}


def coverage(records: int = 1000) -> pd.DataFrame:
    """Share of 95 % intervals that hold the truth, by model, epsilon and whether the noise is part of the model."""
    rows = pd.read_csv(HERE.parent / "benchmarks" / "results" / "calibration.csv")
    rows["name"] = rows["parameter"].str.partition("[")[0]
    rows = rows[(rows["n"] == records) & (rows["name"] == rows["case"].map(PARAMETERS))]
    sums = rows.groupby(["case", "epsilon", "aware"])[["covered_95", "replicates"]].sum()
    return (sums["covered_95"] / sums["replicates"]).rename("share").reset_index()


def main() -> None:
    """Draw and write it."""
    import matplotlib.pyplot as plt

    shares = coverage()
    figure, axes = plt.subplots(1, len(MODELS), figsize=(9, 2.9), sharey=True)
    for axis, (case, title) in zip(axes, MODELS.items(), strict=True):
        axis.axhline(0.95, color="black", lw=0.8, ls=":")
        for aware, style, label in ((1, "o-C0", "noise in the model (the default)"), (0, "s--C1", "noise ignored (plug-in)")):
            one = shares[(shares["case"] == case) & (shares["aware"] == aware)]
            axis.plot(one["epsilon"], one["share"], style, label=label, ms=5)
        axis.set(title=title, xscale="log", xlabel="epsilon", ylim=(0, 1.03))
        axis.set_xticks([0.05, 0.1, 0.3, 1], ["0.05", "0.1", "0.3", "1"], minor=False)
        axis.minorticks_off()
    axes[0].set_ylabel("95 % intervals\nthat hold the truth")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncols=2, frameon=False)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(HERE / "coverage.png", dpi=110, facecolor="white")


if __name__ == "__main__":
    main()
