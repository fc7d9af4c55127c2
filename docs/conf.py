"""How Sphinx makes the site: `uv run --group docs sphinx-build -W --keep-going docs output/site`. It fetches nothing while it builds."""

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import pymc_dp  # noqa: E402 - the package of this folder

# Notebooks stand beside this folder, where readers of the repository look for them; Sphinx reads within its own.
shutil.rmtree(HERE / "examples", ignore_errors=True)
for path in (HERE.parent / "notebooks").glob("*.ipynb"):
    (HERE / "examples").mkdir(exist_ok=True)
    # links that lead to docs/ from the repository lead to its pages here
    (HERE / "examples" / path.name).write_text(path.read_text().replace("](../docs/", "](../"))


def reference() -> str:
    """The page of all public names, in the groups of GROUPS; a name that is in none of them stops the build."""
    named = {name for names in GROUPS.values() for name in names}
    if named != set(pymc_dp.__all__):
        raise ValueError(f"docs/conf.py: put into GROUPS, or take out of it, {sorted(named ^ set(pymc_dp.__all__))}")
    page = [
        "# Reference",
        "",
        "Every public name, by what it is for. `import pymc_dp as pmdp`; every example goes on from the lines at the",
        "beginning of the package's own docstring:",
        "",
        "```python",
        *(line[4:] for line in (pymc_dp.__doc__ or "").splitlines() if line.startswith((">>> ", "... "))),
        "```",
    ]
    for group, names in GROUPS.items():
        page += ["", f"## {group}", "", "```{eval-rst}", ".. autosummary::", "   :toctree: api", "   :nosignatures:", ""]
        page += [f"   pymc_dp.{name}" for name in names] + ["```"]
    return "\n".join(page) + "\n"


GROUPS = {
    "From a model to a private posterior": ["inspect", "sample", "release", "rewrite", "privatize", "annotate", "to_share"],
    "Records that are read in parts": ["share_out", "partial_statistics", "add_up"],
    "What these return": ["Inspection", "Release"],
    "Planning, before anything is paid": [
        "plan", "PlannedWidths", "suggest_bounds", "SuggestedBounds", "private_bounds", "PrivateBounds", "utility", "advise", "Advice",
    ],
    "What you declare": ["Natural", "Norm", "Individual", "Person", "Bins"],
    "Noise and budget": ["Laplace", "Gaussian", "Fourier", "Ledger", "Cost", "compose", "bounded_range"],
    "After a release": [
        "private_model", "posterior_predictive", "predict", "predictive_check", "marginal_likelihoods", "synthesize", "combine",
        "consistent", "gibbs_steps", "hidden_markov",
    ],
    "Records that are randomised, for any likelihood": ["randomise", "RandomisedAnswers"],
    "Questions": ["QuerySession", "ask"],
    "Draws from the posterior itself": [
        "PosteriorSample", "find_MAP", "BallNormal", "TrimmedBeta", "TrimmedDirichlet", "smallest_probability", "lipschitz",
    ],
    "Chains that pay as they go": ["Gibbs", "Barker", "Penalty", "Annealing"],
    "Numbers that somebody else made private": [
        "published", "Exact", "LaplaceNoise", "DiscreteLaplace", "GaussianNoise", "DiscreteGaussian", "Skellam", "NoiseTable",
        "Noisy", "NoisyRatio", "Rounded",
        "RoundedToBase", "Clipped", "Suppressed", "Threshold", "Transitions", "RandomisedResponse", "UnrelatedQuestion", "ForcedResponse",
        "Codebook", "codebooks",
        "PublishedTable", "TableQuery", "CellPrior", "sample_table", "read_census", "table_steps",
    ],
    "Audits": ["audit", "Audit"],
    "Pictures": [
        "plot_posteriors", "plot_privacy_share", "plot_plan", "plot_ledger", "plot_spending", "plot_network", "plot_states", "plot_audit",
    ],
    "Errors and warnings": [
        "Refusal", "PrivateComputationError", "UnaccountedWarning", "WeakPrivacyWarning", "SparseCellsWarning", "MissingWarning",
        "ClampedWarning", "ConvergenceWarning", "QuadratureWarning", "NotSharedWarning",
    ],
}  # fmt: skip
(HERE / "reference.md").write_text(reference())

project = "pymc_dp"
author = "the pymc_dp developers"
version = release = pymc_dp.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "formulas",
]
exclude_patterns = ["README.md"]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # outputs are those that are kept in the notebooks; tests run them again
nb_merge_streams = True

autosummary_generate = True
autodoc_typehints = "none"  # types are in the docstrings, in words
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False  # names that share a line of a docstring share one of the page
napoleon_use_ivar = True
templates_path = ["_templates"]
suppress_warnings = ["myst.strikethrough"]

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "pymc_dp"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
copyright = "the pymc_dp developers, Apache License 2.0"  # the name that Sphinx looks for


def bars(app, what, name, obj, options, lines) -> None:
    """A bar in a docstring is that of an absolute value."""
    if "lipschitz" in name:
        lines[:] = [line.replace("|", "\\|") for line in lines]


def setup(app) -> None:
    """Sphinx calls this."""
    app.connect("autodoc-process-docstring", bars)
