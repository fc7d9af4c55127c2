# %% [markdown]
# # A private analysis of real records
#
# 6,366 women answered a magazine's questions about their marriages (Fair 1978; shipped by statsmodels). Each row is one
# respondent. Was there an affair, by how she rates her marriage? How many years has she been married? Her rating is taken to
# be public, her answers are not.

# %%
import argparse
from pathlib import Path

import arviz as az
import numpy as np
import pymc as pm
import statsmodels.api as sm

import pymc_dp as pmdp

arguments = argparse.ArgumentParser(description="A private analysis of the answers of 6,366 women.")
arguments.add_argument("--epsilon", type=float, default=1.0)
arguments.add_argument("--output", type=Path, default=Path("output"))
epsilon, output = (given := arguments.parse_args()).epsilon, given.output

# %% An ordinary PyMC model
answers = sm.datasets.fair.load_pandas().data
coords = {"rating": ["very poor", "poor", "fair", "good", "very good"]}

with pm.Model(coords=coords) as model:
    rating = pm.Data("rate_marriage", answers["rate_marriage"].to_numpy(dtype=int) - 1)
    share = pm.Beta("share", 1, 1, dims="rating")
    pm.Bernoulli("affair", share[rating], observed=answers["affairs"].to_numpy() > 0)
    pm.Deterministic("gap", share[0] - share[4])
    years = pm.Gamma("years", 2, 0.2)
    pm.Poisson("years_married", years, observed=answers["yrs_married"].round().to_numpy(dtype=int))

# %% What would be released, and how far one answer can move it: free
declared = {"public": ["rating"], "bounds": {"years_married": (0, 25)}, "unit": "respondent"}
print(pmdp.inspect(model, **declared), "\n")

# %% Three lines: the private posterior
idata = pmdp.sample(1000, model=model, epsilon=epsilon, random_seed=1, **declared)
print("\nPrivate posterior\n", az.summary(idata, kind="stats"))

# %% Beside it the posterior without privacy: shown only because these records are public.
# Beta and Gamma are conjugate here, so it needs no compiled graph of the records, which PyTensor would write to its cache.
rng = np.random.default_rng(1)
had, rated = answers["affairs"].to_numpy() > 0, answers["rate_marriage"].to_numpy(dtype=int) - 1
ones, n = np.bincount(rated, weights=had, minlength=5), np.bincount(rated, minlength=5)
total = answers["yrs_married"].round().sum()
exact_share = rng.beta(1 + ones, 1 + n - ones, size=(2, 1000, 5))
exact_years = rng.gamma(2 + total, 1 / (0.2 + len(answers)), size=(2, 1000))
exact_draws = {"share": exact_share, "gap": exact_share[..., 0] - exact_share[..., 4], "years": exact_years}
exact = az.from_dict({"posterior": exact_draws}, coords=coords, dims={"share": ["rating"]})
print("\nWithout privacy\n", az.summary(exact, kind="stats"))

# %% What it cost
print("\nSpent\n", idata["privacy"].to_dataset().to_dataframe().to_string(index=False))
print(f"epsilon {idata.attrs['epsilon_exact']} in all, delta {idata.attrs['delta']:g}, protecting one {idata.attrs['privacy_unit']}")

# %% A picture and a file
output.mkdir(parents=True, exist_ok=True)
picture = az.plot_forest({"private": idata, "without privacy": exact}, var_names=["share", "gap"], combined=True, backend="matplotlib")
picture.add_legend("model")
picture.savefig(output / "fair.png")
idata.to_netcdf(output / "fair.nc", engine="h5netcdf")
print(f"\nWritten: {output / 'fair.png'} and {output / 'fair.nc'}")
