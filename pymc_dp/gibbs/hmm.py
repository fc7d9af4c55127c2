"""Hidden Markov models of released counts, with the noise as part of the emission probabilities (FGWC16, section 5, and beyond it).

Records are events, each in one step of one sequence and with one level of every categorical variable; what was released is how many
events of each step have each level, with noise. The paper takes max(0, noisy count) for the count. Here exact counts are unknowns that
are drawn with the rest, so that a step without events does not speak, and a state's profile is not washed out by noise.

The model: states z of a sequence are a Markov chain, z_1 ~ ``initial``, z_t ~ row z_{t-1} of ``transition``. A step has N events,
N ~ Poisson(rate), rate ~ Gamma(shape a, mean m of its sequence), 1/m ~ Gamma(1, 1), a ~ Exponential(1), and every event has a level of
every variable, drawn from that variable's probabilities in the step's state. Rows of probabilities are Dirichlet. The released counts are
those plus discrete Laplace noise. Each sweep draws z by forward filtering and backward sampling, probabilities from their Dirichlet
conditionals, and exact counts by moves of single events that leave their conditional law unchanged.

Shapes: R sequences, T steps, K states, V levels of all variables together.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dp.gibbs.chains import forward_backward
from pymc_dp.privacy.accounting import Refusal, is_whole
from pymc_dp.privacy.calls import explained
from pymc_dp.private_models.annotation import covering_all
from pymc_dp.private_models.diagnostics import warn_if_unsettled
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.release import Release

if TYPE_CHECKING:
    import xarray as xr

SMALLEST = 1e-300
"""The smallest probability, so that its logarithm is a number."""
MEANS = (1.0, 1.0)
"""Shape and rate of the Gamma law of 1 / mean number of events."""
LEAST_RATIO = 1e-150
"""The least ratio of the probabilities of noise of k + 1 and of k."""
UNSETTLED = (
    "They may have found different states. Draw longer, at no cost: hidden_markov(release, ..., tune=3000, draws=3000); or take fewer"
    " states."
)
"""What to do where chains are not to be trusted."""


@explained
def hidden_markov(
    release: Release,
    *,
    sequences: int,
    states: int,
    draws: int = 500,
    tune: int = 500,
    chains: int = 2,
    noise_aware: bool = True,
    missing: Iterable[tuple[int, int]] = (),
    emission: float = 1.0,
    transition: float = 1.0,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> "xr.DataTree":
    """Draw states, profiles and transitions of a hidden Markov model given released counts, any number of times at no further cost.

    States of a sequence are a Markov chain. A step has a Gamma-Poisson number of events, and every event a level of every variable, drawn
    from that variable's probabilities in the step's state. Rows of probabilities are Dirichlet.

    Parameters
    ----------
    release : Release
        A release of Categorical (or Bernoulli) variables with Laplace noise, all indexed by the same private index of ``sequences`` times T
        steps, the step changing fastest: ``pm.Categorical(name, p[sequence * T + step], observed=...)``.
    sequences, states : int
        How many chains of states there are, and how many states. One state is naive Bayes.
    draws, tune, chains : int
        Numbers of sweeps that are kept, of sweeps that are not, and of chains. The number of a state means nothing, so the states of every
        chain are numbered to agree as far as possible with the first chain.
    noise_aware : bool
        With False, max(0, noisy count) is taken as the count, as FGWC16 does (their equation 16), and noise blurs the profiles.
    missing : iterable of (sequence, step)
        Steps that say nothing, for example held out. Which ones must not have been chosen from the records.
    emission, transition : float
        Parameters of the symmetric Dirichlet priors, of profiles, and of rows of transitions.
    random_seed : int, optional
        The seed of the sampler; it has nothing to do with the noise.
    progressbar : bool

    Returns
    -------
    xarray.DataTree
        Group ``posterior``: ``initial``, ``transition``, profiles by name, and ``states`` (chain, draw, sequence, step). Group
        ``latent_statistics``, if noise-aware: the exact numbers of ``events``. ``observed_data``, ``privacy`` and attributes are those of
        ``sample``. A ``ConvergenceWarning`` says where chains disagree or hardly moved.

    Raises
    ------
    Refusal
        When the release is not of this kind.

    Examples
    --------
    >>> with pm.Model() as events:
    ...     p = pm.Dirichlet("p", np.ones((6, 2)))
    ...     kind = pm.Categorical("kind", p[pm.Data("step", np.arange(200) % 6)], observed=votes)
    >>> released = pmdp.release(events, epsilon=5.0)
    >>> tree = pmdp.hidden_markov(released, sequences=2, states=2, draws=5, tune=5, progressbar=False)
    >>> tree.posterior["states"].shape
    (2, 5, 2, 3)
    """
    statistics = _checked(release, sequences)
    for name, value in {"states": states, "draws": draws, "chains": chains}.items():
        if not is_whole(value, 1):
            raise Refusal(f"{name} must be a positive integer. Write for example {name}=2.")
    settings = noise_aware, emission, transition
    drawn = _drawn(statistics, sequences, states, missing, settings, (chains, tune, draws), random_seed, progressbar)
    _number_alike(drawn, [statistic.variable for statistic in statistics], states)
    return covering_all(_tree(drawn, statistics, noise_aware), release)


def _drawn(
    statistics: tuple[NoisyStatistic, ...], sequences: int, states: int, missing: Iterable[tuple[int, int]],
    settings: tuple[bool, float, float], lengths: tuple[int, int, int], seed: int | None, progressbar: bool,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Draws (chain, draw, ...) by name. ``settings`` are those of ``_sweep``; ``lengths`` are numbers of chains, of tuning and of draws."""
    steps = len(statistics[0].noisy) // sequences
    noisy = np.concatenate([statistic.noisy.reshape(sequences, steps, -1) for statistic in statistics], axis=-1)
    starts = np.cumsum([0, *(statistic.noisy.shape[-1] for statistic in statistics)])
    seen = np.ones((sequences, steps), dtype=bool)
    for place in missing:
        seen[place] = False
    # Of noise that is hardly ever there the ratio of two neighbouring values is no double any more: it is kept where it can be divided by.
    ratios = np.maximum(np.exp([statistic.noise.log_ratio for statistic in statistics]), LEAST_RATIO)
    rng, (chains, tune, draws) = np.random.default_rng(seed), lengths
    kept = []
    with _bar(progressbar, chains * (tune + draws)) as step_on:
        for _ in range(chains):
            state = _start(noisy, starts, seen, states, settings[0], rng)
            for sweep in range(tune + draws):
                _sweep(state, noisy, ratios, starts, seen, *settings, rng)
                if sweep >= tune:
                    kept.append(_copied(state, starts, statistics))
                step_on()
    return {name: np.stack([draw[name] for draw in kept]).reshape(chains, draws, *kept[0][name].shape) for name in kept[0]}


def _tree(drawn: dict[str, np.ndarray], statistics: tuple[NoisyStatistic, ...], noise_aware: bool) -> "xr.DataTree":
    """The draws with names of their axes, exact numbers of events in a group of their own, and what was released."""
    import xarray as xr

    dims = {"initial": ["state"], "transition": ["state", "next_state"], "states": ["sequence", "step"], "events": ["sequence", "step"]}
    dims |= {statistic.variable: ["state", f"{statistic.variable}_level"] for statistic in statistics}
    data = {name: (["chain", "draw", *dims[name]], values) for name, values in drawn.items()}
    chains, draws = drawn["initial"].shape[:2]
    coords = {"chain": np.arange(chains), "draw": np.arange(draws)}
    latent = {"events": data.pop("events")}
    groups = {"posterior": xr.Dataset(data, coords=coords)}
    if noise_aware:
        groups["latent_statistics"] = xr.Dataset(latent, coords=coords)
    released = {statistic.variable: (["cell", f"{statistic.variable}_level"], statistic.noisy) for statistic in statistics}
    groups["observed_data"] = xr.Dataset(released, coords={"cell": np.arange(len(statistics[0].noisy))})
    warn_if_unsettled(xr.DataTree.from_dict({"posterior": groups["posterior"].drop_vars("states")}), UNSETTLED)
    return xr.DataTree.from_dict(groups)


def _number_alike(drawn: dict[str, np.ndarray], profiles: Iterable[str], states: int) -> None:
    """Number the states of every chain as in the first: the numbering under which it is most often in the same state at the same step.

    Priors are the same for all states, so a numbering is as likely as any other, and draws (chain, draw, ...) stay what they are.
    """
    from scipy.optimize import linear_sum_assignment

    where = np.stack([(drawn["states"] == k).mean(axis=1) for k in range(states)], axis=1)  # (chain, state, sequence, step)
    for chain in range(1, len(where)):
        together = np.einsum("jrt,krt->jk", where[0], where[chain])
        _, order = linear_sum_assignment(together, maximize=True)
        for name in ("initial", *profiles):
            drawn[name][chain] = drawn[name][chain][:, order]
        drawn["transition"][chain] = drawn["transition"][chain][:, order][:, :, order]
        drawn["states"][chain] = np.argsort(order)[drawn["states"][chain]]


def _checked(release: Release, sequences: int) -> tuple[NoisyStatistic, ...]:
    if not isinstance(release, Release):
        raise Refusal("release must be what pymc_dp.release returned. Write hidden_markov(pymc_dp.release(model, epsilon=...), ...).")
    for statistic in release.statistics:
        counts = (
            statistic.distribution in {"Categorical", "Bernoulli"}
            and statistic.sizes in {"simplex", "kept", "free"}
            and statistic.noisy.ndim == 2
        )
        if not counts or statistic.mechanism != "laplace" or statistic.divisor != 1 or statistic.noisy.shape[-1] < 2:
            raise Refusal(
                f"{statistic.variable} is not released as counts of levels by a private index with Laplace noise."
                f" Write pm.Categorical({statistic.variable!r}, p[sequence * T + step], observed=...),"
                " with p of shape (sequences * T, levels)."
            )
    cells = {len(statistic.noisy) for statistic in release.statistics}
    if len(cells) > 1 or not is_whole(sequences, 1) or cells.pop() % sequences:
        raise Refusal("sequences does not divide the released cells into steps. Every variable needs the same index, sequence * T + step.")
    return release.statistics


class _State:
    """Where a chain is: counts (R, T, V), events (R, T), z (R, T), profiles (K, V), initial (K,), transition (K, K), rates."""

    def __init__(self, counts: np.ndarray, profiles: np.ndarray, states: int, z: np.ndarray) -> None:
        self.counts, self.profiles, self.z = counts, profiles, z
        self.initial = np.full(states, 1 / states)
        self.transition = 0.5 * np.eye(states) + 0.5 / states
        self.events = np.zeros(z.shape, dtype=np.int64)
        self.shape, self.means, self.rates = 0.5, np.ones(len(z)), np.ones(z.shape)


def _start(noisy: np.ndarray, starts: np.ndarray, seen: np.ndarray, states: int, noise_aware: bool, rng: np.random.Generator) -> _State:
    """A first state: no events yet, and profiles around what is seen of all steps together."""
    shares = [np.maximum(noisy[seen][:, a:b].sum(axis=0), 1.0) for a, b in pairwise(starts)]
    around = [1 + 10 * share / share.sum() if states > 1 else 1 + share for share in shares]
    profiles = np.concatenate([rng.dirichlet(parameters, states) for parameters in around], axis=1)
    counts = np.zeros_like(noisy) if noise_aware else np.maximum(noisy, 0)
    return _State(counts, profiles, states, rng.integers(states, size=noisy.shape[:2]))


def _sweep(
    state: _State, noisy: np.ndarray, ratios: np.ndarray, starts: np.ndarray, seen: np.ndarray, noise_aware: bool, emission: float,
    transition: float, rng: np.random.Generator,
) -> None:  # fmt: skip
    """Everything once, each given the rest."""
    from pymc_dp.gibbs.count_moves import move_events  # numba takes a while to import

    if noise_aware:
        repeats = int(np.clip(-2 / np.log(ratios.max()), 3, 30))  # single events walk through wide noise slowly
        move_events(noisy, ratios, starts, state.profiles, state.z, state.counts, state.events, state.rates, seen, repeats, rng)
        _rates(state, seen, rng)
    heard = state.counts * seen[..., None]
    table = heard @ _log(state.profiles).T
    state.z, _ = forward_backward(_log(state.initial), _log(state.transition), table, rng)
    K = len(state.initial)
    sums = np.stack([heard[state.z == k].sum(axis=0) for k in range(K)])
    for a, b in pairwise(starts):
        state.profiles[:, a:b] = _dirichlets(emission + sums[:, a:b], rng)
    moves = np.zeros((K, K))
    np.add.at(moves, (state.z[:, :-1], state.z[:, 1:]), 1)
    state.transition = _dirichlets(transition + moves, rng)
    state.initial = rng.dirichlet(transition + np.bincount(state.z[:, 0], minlength=K))


def _log(probabilities: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(probabilities, SMALLEST))


def _dirichlets(parameters: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.stack([rng.dirichlet(row) for row in parameters])


def _rates(state: _State, seen: np.ndarray, rng: np.random.Generator) -> None:
    """Rates of events, the means of their law in each sequence, and its shape, which is moved with the rates summed out."""
    from scipy.special import gammaln

    def draw_rates() -> np.ndarray:
        return rng.gamma(state.shape + state.events * seen) / (state.shape / state.means[:, None] + seen)

    state.rates = draw_rates()
    many = seen.shape[1]
    state.means = (MEANS[1] + state.shape * state.rates.sum(axis=1)) / rng.gamma(MEANS[0] + state.shape * many, size=len(state.means))

    def log_density(a: float) -> float:
        N, m = state.events, state.means[:, None]
        logs = gammaln(a + N) - gammaln(a) + a * np.log(a / (a + m)) + N * np.log(m / (a + m))
        return float(logs[seen].sum() - a + np.log(a))  # of log a

    proposed = state.shape * np.exp(0.2 * rng.standard_normal())
    if np.log(rng.random()) < log_density(proposed) - log_density(state.shape):
        state.shape = proposed
    state.rates = draw_rates()


def _copied(state: _State, starts: np.ndarray, statistics: tuple[NoisyStatistic, ...]) -> dict[str, Any]:
    draw: dict[str, Any] = {"initial": state.initial.copy(), "transition": state.transition.copy(), "states": state.z.astype(np.int16)}
    draw |= {statistic.variable: state.profiles[:, starts[j] : starts[j + 1]].copy() for j, statistic in enumerate(statistics)}
    return draw | {"events": state.events.astype(np.int32)}


class _bar:  # noqa: N801 - a context manager
    """A progress bar that steps on, or nothing."""

    def __init__(self, shown: bool, total: int) -> None:
        self.shown, self.total = shown, total

    def __enter__(self):
        if not self.shown:
            return lambda: None
        from rich.progress import Progress

        self.progress = Progress(transient=True)
        self.progress.__enter__()
        task = self.progress.add_task("Sweeps", total=self.total)
        return lambda: self.progress.advance(task)

    def __exit__(self, *failure):
        if self.shown:
            self.progress.__exit__(*failure)
