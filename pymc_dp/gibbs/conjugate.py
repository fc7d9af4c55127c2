"""A step that draws continuous variables from their exact conditional, where that is Beta, Dirichlet, Gamma, normal or of their kind.

No prior and no likelihood is matched by name. The slopes of the model's own log-density are read at a few values of the variable, and
the parameters of the form that has these slopes are solved for; slopes and values at further points must then agree. So any
spelling of a conjugate model goes through, and plug-in private models do. It is asked at made-up points when the step is made, and
again in every sweep: a conditional of another form is an error, not a wrong draw.

Shapes: E entries of the block, D points.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import pymc as pm
import pytensor
from numpy.random import Generator
from pymc.blocking import PointType, StatsType
from pymc.distributions.transforms import _default_transform
from pymc.logprob.transforms import IntervalTransform, LogOddsTransform, LogTransform, SimplexTransform
from pymc.pytensorf import constant_fold
from pymc.util import RandomGenerator, get_random_generator
from pytensor.gradient import DisconnectedInputError, NullTypeGradError
from pytensor.graph.basic import Variable

from pymc_dp.gibbs.conditional import PROBE, Compiled, Factors, Point, compiled, factors, fixed_generator, initial_point_of, jittered
from pymc_dp.gibbs.conjugate_forms import Entrywise, Form, Jointly, Shares
from pymc_dp.gibbs.exact import ExactStep
from pymc_dp.gibbs.latents import Drawn, Latent, depending_on, drawn, latents
from pymc_dp.gibbs.supports import Support, support
from pymc_dp.privacy.accounting import Refusal

TOLERANCE = 1e-7
"""How well the model must agree with the form, beside the size of the form's terms."""
TRIALS = 4
"""Made-up points at which a form is tried before a step is handed out."""
LARGEST = 200
"""Entries that are drawn together, if they are not independent: each costs an evaluation of the model's slopes in every sweep."""
REAL = tuple(distribution.rv_type for distribution in (pm.Normal, pm.MvNormal, pm.Flat, pm.StudentT, pm.Laplace, pm.Logistic, pm.Cauchy))
"""Distributions on the whole real line, of which each could have a normal conditional, if a potential made it so."""


@dataclass(frozen=True)
class Block:
    """Variables that are drawn together.

    Attributes
    ----------
    names, shapes : tuple
        Of the values.
    form : Form
    function : Compiled
        The log-density of all factors in which the variables stand, and its derivatives, of the values and of counts.
    pattern : (D, E) ndarray
        What the points are made of at which slopes are read.
    counts : tuple of Drawn
        What is drawn before, so that the conditional is of the form: counts without noise.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    form: Form
    function: Compiled
    pattern: np.ndarray
    counts: tuple[Drawn, ...] = ()

    def split(self, flat: np.ndarray) -> list[np.ndarray]:
        """Entries (E,) as values of the variables."""
        arrays, start = [], 0
        for shape in self.shapes:
            arrays.append(flat[start : start + prod(shape)].reshape(shape))
            start += prod(shape)
        return arrays


def conditional(block: Block, point: Point, rng: Generator) -> tuple[np.ndarray, float]:
    """Parameters of the conditional of a block given everything else, and how far the model is off the form, relatively.

    Where counts without noise are drawn it is given these.

    Raises
    ------
    ArithmeticError
        Where the model is not of the form.
    """
    present = np.concatenate([np.ravel(point[name]) for name in block.names])
    points = block.form.points(block.pattern, present)
    function = block.function.at(point)
    counts = [latent.draw(point, rng) for latent in block.counts]
    values, slopes = np.empty(len(points)), np.empty_like(points)
    for d, at in enumerate(points):
        values[d], *by = function(*block.split(at), *counts)
        slopes[d] = np.concatenate([np.ravel(derivative) for derivative in by])
    with np.errstate(all="ignore"):  # what is no number is off
        parameters = block.form.fit(points, slopes)
        expected, size = block.form.slope(parameters, points)
        off = np.abs(slopes - expected) / (np.abs(slopes) + size + np.finfo(float).tiny)
        densities, sizes = block.form.density(parameters, points)
        change, expected = values - values[0], densities - densities[0]
        off_values = np.abs(change - expected) / (np.abs(values) + sizes + np.finfo(float).tiny)
        most = float(np.append(off, off_values).max())
    if not most <= TOLERANCE:  # nor is what is no number
        raise ArithmeticError(f"The conditional of {', '.join(block.names)} is no longer {block.form.name}. Leave it to another step.")
    return parameters, most


def sweep(block: Block, point: Point, rng: Generator) -> tuple[list[np.ndarray], float]:
    """Values of the variables drawn from their exact conditional given everything else, and how far the model is off the form."""
    parameters, off = conditional(block, point, rng)
    return block.split(block.form.draw(parameters, rng)), off


# ---------- which form
def forms(random: Variable, transform: object, shape: tuple[int, ...]) -> tuple[Form, ...]:
    """The forms that the conditional of one variable could have, told by where its values lie."""
    default = _default_transform(random.owner.op, random)
    if transform is None:
        if default is not None or not isinstance(random.owner.op, REAL):
            return ()
        return Entrywise("normal"), Jointly((1.0,) * prod(shape))
    if type(transform) is not type(default):
        return ()
    if isinstance(transform, LogTransform):
        return Entrywise("gamma"), Entrywise("inverse gamma"), Entrywise("generalized inverse gaussian")
    if isinstance(transform, LogOddsTransform) or (isinstance(transform, IntervalTransform) and _of_shares(transform, random)):
        return (Entrywise("beta"),)
    if isinstance(transform, SimplexTransform):
        return (Shares(prod(shape[:-1])),)
    return ()


def _of_shares(transform: IntervalTransform, random: Variable) -> bool:
    """Whether an interval is that from 0 to 1, and will be."""
    ends = [None if end is None else constant_fold([end], raise_not_constant=False)[0] for end in transform.args_fn(*random.owner.inputs)]
    return all(not isinstance(end, Variable | None) and (np.asarray(end) == k).all() for k, end in enumerate(ends))


def density(model: pm.Model, randoms: Sequence[Variable], model_factors: Factors, behind: Sequence[Latent]) -> list[Variable]:
    """The factors in which variables stand, added up, and its derivatives by their values.

    With counts behind released ones, the law of these takes the place of that of the released ones.

    Raises
    ------
    NotImplementedError, NullTypeGradError, DisconnectedInputError
        Where there are none.
    """
    values = [model.rvs_to_values[random] for random in randoms]
    terms = model_factors.depending_on(values, without=[latent.random for latent in behind]) + [latent.density for latent in behind]
    total = sum(term.astype("float64").sum() for term in terms)
    return [total, *pytensor.gradient.grad(total, values)]


def recognised(
    model: pm.Model, randoms: Sequence[Variable], start: Point, model_factors: Factors, behind: Sequence[Latent] = ()
) -> Block | None:
    """A block of variables if their joint conditional has a form, given the counts behind released ones, and None otherwise.

    Several are taken together only if they are jointly normal. The block is slow: see ``compiled_block``.
    """
    values = [model.rvs_to_values[random] for random in randoms]
    shapes = tuple(np.shape(start[value.name]) for value in values)
    possible = [forms(random, model.rvs_to_transforms[random], shape) for random, shape in zip(randoms, shapes, strict=True)]
    if not all(possible) or not all(map(prod, shapes)):
        return None
    if len(randoms) == 1:
        tried = possible[0]
    elif all(isinstance(several[-1], Jointly) for several in possible):
        tried = (Jointly((1.0,) * sum(map(prod, shapes))),)
    else:
        return None
    try:
        probe = compiled(model, [*values, *(latent.value for latent in behind)], density(model, randoms, model_factors, behind), mode=PROBE)
    except (NotImplementedError, NullTypeGradError, DisconnectedInputError):
        return None
    names = tuple(str(value.name) for value in values)
    counts = tuple(drawn(model, latent, mode=PROBE) for latent in behind)
    for form in tried:
        if not isinstance(form, Jointly) or len(form.scale) <= LARGEST:
            block = _tried(Block(names, shapes, form, probe, np.zeros((0, 0)), counts), model, start)
            if block is not None:
                return block
    return None


def compiled_block(
    block: Block, model: pm.Model, randoms: Sequence[Variable], model_factors: Factors, behind: Sequence[Latent] = (), **settings: object
) -> Block:
    """A block whose functions are compiled for speed, from one that ``recognised`` gave."""
    values = [*(model.rvs_to_values[random] for random in randoms), *(latent.value for latent in behind)]
    function = compiled(model, values, density(model, randoms, model_factors, behind), **settings)
    return replace(block, function=function, counts=tuple(drawn(model, latent, **settings) for latent in behind))


def recognised_block(
    model: pm.Model, randoms: Sequence[Variable], start: Point, model_factors: Factors
) -> tuple[Block, list[Latent]] | None:
    """A block of variables, if need be given counts behind released ones, and what stands for these."""
    block = recognised(model, randoms, start, model_factors)
    if block is not None:
        return block, []
    behind = depending_on(latents(model), [model.rvs_to_values[random] for random in randoms])
    block = recognised(model, randoms, start, model_factors, behind) if behind else None
    return None if block is None else (block, behind)


def _tried(block: Block, model: pm.Model, start: Point) -> Block | None:
    """The block if its form holds wherever it is tried."""
    rng, many = fixed_generator(), sum(map(prod, block.shapes))
    states = _states(model)
    first = {name: rng.integers(support.many, size=np.shape(start[name])) for name, support in states.items()}
    for trial in range(TRIALS):
        point = jittered(start, rng)
        if trial:  # the first time the states are initial ones, which are possible; then each entry has one after another
            point |= {name: support.lowest + (first[name] + trial) % support.many for name, support in states.items()}
        block = replace(block, pattern=block.form.pattern(many, rng))
        try:
            if trial and not _possible(block, point, rng):
                continue
            parameters, _ = conditional(block, point, rng)
            block.form.draw(parameters, rng)
        except (ArithmeticError, np.linalg.LinAlgError):
            return None
        if isinstance(block.form, Jointly) and trial == 0:
            block = replace(block, form=Jointly(tuple(1 / np.sqrt(np.diag(parameters[:, 1:])))))
    return block


def _possible(block: Block, point: Point, rng: Generator) -> bool:
    counts = [latent.draw(point, rng) for latent in block.counts]
    return bool(np.isfinite(block.function(point, *(point[name] for name in block.names), *counts)[0]))


def _states(model: pm.Model) -> dict[str, Support]:
    """The states of discrete variables, where they are known."""
    supports = {}
    for random in model.free_RVs:
        if random.type.dtype.startswith(("int", "uint", "bool")):
            with suppress(Refusal):
                supports[str(model.rvs_to_values[random].name)] = support(random, {})
    return supports


# ---------- the step
class Conjugate(ExactStep):
    """Draws variables from their exact conditional given everything else, where that is of a form that can be drawn from.

    Beta, Dirichlet, Gamma, inverse Gamma, generalized inverse Gaussian and normal conditionals, whatever the spelling of the model:
    each entry by itself where entries are independent, normal ones jointly where they are not. Several variables are drawn together
    if they are jointly normal. On a private model that knows its noise, counts without noise are drawn first, where that helps.

    Parameters
    ----------
    vars : list of Variable
        Continuous variables of the model, or their values.
    model : pm.Model, optional
    rng, initial_point, compile_kwargs, blocked
        As for PyMC's own steps.

    Raises
    ------
    Refusal
        Where the conditional has no such form.
    """

    name = "conjugate"

    def __init__(
        self,
        vars: Sequence[Variable],
        *,
        model: pm.Model | None = None,
        rng: RandomGenerator = None,
        initial_point: PointType | None = None,
        compile_kwargs: Mapping[str, object] | None = None,
        blocked: bool = True,
        block: Block | None = None,
    ) -> None:
        model = pm.modelcontext(model)
        self.vars = [model.rvs_to_values.get(variable, variable) for variable in vars]
        if block is None:
            randoms = [model.values_to_rvs[value] for value in self.vars]
            start = initial_point_of(model) if initial_point is None else initial_point
            model_factors = factors(model)
            easy = recognised_block(model, randoms, start, model_factors)
            if easy is None:
                names = ", ".join(str(random.name) for random in randoms)
                raise Refusal(f"The conditional of {names} has no form that can be drawn from. Leave it to another step, such as pm.NUTS.")
            block = compiled_block(easy[0], model, randoms, model_factors, easy[1], **(compile_kwargs or {}))
        self.block = block
        self.rng = get_random_generator(rng)

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """One draw."""
        drawn, off = sweep(self.block, point, self.rng)
        return {**point, **dict(zip(self.block.names, drawn, strict=True))}, [{"misfit": off}]
