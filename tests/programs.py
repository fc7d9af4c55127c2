"""Random PyMC models as Python text, and the columns of records that they read: the grammar of ``generator``.

A program is text, so that what fails can be read and becomes a test as it is. Expressions are known by their shape only: one number, one
per record (``row``), one per item (``items``), or records by items (``matrix``).
"""

import random
from dataclasses import dataclass, field

LEVELS = 2
"""Of every index."""
KINDS = {"real": ["float64"] * 3 + ["float32"], "level": ["int64", "int64", "int8", "uint8", "float64", "bool"],
         "count": ["int64", "float64", "int16"], "bit": ["int64", "bool", "float64"], "total": ["float64", "float64", "int64"]}  # fmt: skip
"""Dtypes of a column of records, by what it holds."""


@dataclass
class Column:
    """An array of records.

    Attributes
    ----------
    kind : str
    axes : tuple of str
        "person", "item" or "other".
    dtype : str
    moves : str or None
        The axis along which it has an entry, or several, for every record; None where it is public.
    observed : bool
    """

    kind: str
    axes: tuple[str, ...]
    dtype: str
    moves: str | None
    observed: bool = False


@dataclass
class Program:
    """A model as text, and what is asked of it."""

    seed: int
    theme: str
    sizes: dict[str, int] = field(default_factory=dict)
    columns: dict[str, Column] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    bounds: dict[str, object] = field(default_factory=dict)
    public: list[str] = field(default_factory=list)
    neighbours: str = "replace"
    door: str = "release"
    mechanism: str = "laplace"
    unit: str = '"row"'
    aware: bool = False
    rewritten: bool = False
    coords: str = ""
    change: str = "any"
    present: int | None = None
    missing: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The model as it would be written."""
        head = f"with pm.Model({f'coords={self.coords}' if self.coords else ''}) as model:"
        return "\n".join([head, *(f"    {line}" for line in self.lines)])


class Writer:
    """Writes one program. Odd expressions are those in which records meet, or which rest on other things than rows."""

    def __init__(self, program: Program, rng: random.Random) -> None:
        self.program, self.rng = program, rng
        self.odd = 0
        self.unknowns: list[tuple[str, int]] = []
        self.counter = 0
        self.spelled: dict[str, str] = {}

    # ---------- columns
    def pick(self, *several):
        return self.rng.choice(several)

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def line(self, text: str) -> None:
        self.program.lines.append(text)

    def fresh(self, stem: str) -> str:
        self.counter += 1
        return f"{stem}{self.counter}"

    def column(self, name: str, kind: str, axes=("person",), *, moves="person", observed=False, dtype=None) -> str:
        """A column of records, made where it is not there."""
        if name not in self.program.columns:
            dtype = dtype or self.pick(*KINDS[kind])
            self.program.columns[name] = Column(kind, tuple(axes), dtype, moves, observed)
        return name

    def covariate(self, name: str, kind: str, axes=("person",), *, moves="person", tensor=True, dtype=None) -> str:
        """The text of a private column above a likelihood; the same spelling wherever it is read, or another one of the same memory."""
        self.column(name, kind, axes, moves=moves, dtype=dtype)
        if name not in self.spelled:
            ways = ("data", "data", "plain", "shared", "cast")
            how = self.pick(*ways, *(("plain",) * 4 if self.program.theme == "lengths" else ()))
            if how == "data":
                self.line(f'{name}_ = pm.Data("{name}", {name})')
            elif how == "shared":
                self.line(f"{name}_ = pytensor.shared({name}, name={self.pick(repr(name), 'None')})")
            elif how == "cast":
                types = ("float64", "float32") if kind == "real" else ("int64", "int32")
                self.line(f'{name}_ = pm.Data("{name}", {name}).astype("{self.pick(*types)}")')
            self.spelled[name] = f"{name}_" if how != "plain" else f"pt.as_tensor({name})" if tensor else name
            if kind == "real":
                self.bound(name, how)
        return self.spelled[name]

    def bound(self, name: str, how: str) -> None:
        """Bounds of a private covariate; of one without a name those of all that inspect may call it."""
        pair = self.pick((-1.0, 1.0), (0.0, 1.0), (-2.0, 3.0), (-1.0, 1.0))
        self.program.bounds[name] = pair

    def values(self, name: str, kind: str, axes=("person",), **more) -> str:
        """The text of an observed column."""
        column = self.program.columns[self.column(name, kind, axes, moves=axes[0], observed=True, **more)]
        if self.program.theme == "missing":
            return self.pick(name, name, f"pd.Series({name})", f"np.ma.masked_invalid({name})", f"{name}.tolist()")
        if len(column.axes) == 1 and self.chance(0.15) and self.program.neighbours == "replace":
            return self.pick(f"pd.Series({name})", f"{name}.tolist()", f"np.ma.masked_invalid({name})", f"pt.as_tensor({name})")
        if self.chance(0.25):
            return f'pm.Data("{name}_data", {name})'
        return name

    # ---------- unknowns
    def unknown(self, length: int = 0, positive: bool = False) -> str:
        """A prior, or a part of one that is there."""
        bounded = self.program.door != "release"
        if bounded:
            if not self.unknowns:
                self.line(f'b = pm.Uniform("b", {self.pick("-1, 1", "0.1, 1")}, shape={self.pick(2, 2, 3)})')
                self.unknowns = [("b", 2)]
            return f"b[:{length}]" if length else f"b[{self.rng.randrange(2)}]"
        alike = [name for name, own in self.unknowns if own == length]
        if alike and self.chance(0.5):
            return self.pick(*alike)
        name = self.fresh("b")
        shape = f", shape={length}" if length else ""
        if not length and not positive and self.chance(0.3):
            laws = ['pm.StudentT("{}", nu=4, sigma=2)', 'pm.Gamma("{}", 2, 2)', 'pm.Deterministic("{}", pm.Normal("{}_raw") * 2)',
                    'pm.Normal("{}", pm.Normal("{}_mu"), 1)', 'pm.Beta("{}", 1, 2)', 'pm.Normal("{}", initval=0.5)']  # fmt: skip
            self.line(f"{name} = {self.pick(*laws).replace('{}', name)}")
        else:
            self.line(f'{name} = pm.{"HalfNormal" if positive else "Normal"}("{name}"{shape})')
        self.unknowns.append((name, length))
        return name

    def table(self, rows: int, columns: int) -> str:
        """Unknowns of two axes."""
        if self.program.door != "release":
            return f"({self.unknown(LEVELS)}[:, None] * np.linspace(1, 2, {columns}))" if rows == LEVELS else self._wide(rows, columns)
        name = self.fresh("B")
        self.line(f'{name} = pm.Normal("{name}", shape=({rows}, {columns}))')
        return name

    def _wide(self, rows: int, columns: int) -> str:
        return f"(pt.ones(({rows}, {columns})) * {self.unknown()})"

    # ---------- expressions: one per record
    def elementwise(self, part: str) -> str:
        return self.pick("pt.tanh({})", "pt.sqr({})", "abs({})", "pt.sigmoid({})", "pt.clip({}, 0, 1)", "({} > 0.5)", "-({})", "pt.cos({})",
                         "pt.exp(-pt.sqr({}))", "pt.floor({})", "pt.sqrt(abs({}))", "pt.softplus({})", "pt.switch({} > 0, 1.0, 0.5)",
                         "pm.math.invlogit({})", "pt.cast({}, 'float32')", "pt.sgn({})", "pt.log1p(abs({}))", "(2.0 ** pt.clip({}, -3, 3))",
                         ).format(part)  # fmt: skip

    def together(self, one: str, other: str) -> str:
        """Two of the same shape as one of that shape."""
        return self.pick("({} + {})", "({} * {})", "({} - {})", "pt.maximum({}, {})", "pt.minimum({}, {})", "pt.logaddexp({}, {})",
                         "pt.switch(({}) > 0, {}, 0.0)", "pt.stack([{}, {}]).sum(axis=0)", "pt.stack([{}, {}], axis=1).max(axis=1)",
                         "pt.stack([{}, {}], axis=-1).mean(axis=-1)", "pt.concatenate([({})[:, None], ({})[:, None]], axis=1).prod(axis=1)",
                         ).format(one, other)  # fmt: skip

    def reshaped(self, part: str) -> str:
        return self.pick("({})[None][0]", "({})[:, None].sum(axis=1)", "({}).dimshuffle(0, 'x')[:, 0]", "({})[:, None].T[0]", "({})[:]",
                         "pt.squeeze(({})[:, None], axis=1)", "(({})[:, None] * np.ones(2))[:, 1]", "pt.specify_shape({}, (None,))",
                         "({}).reshape((-1, 1))[:, 0]", "pt.expand_dims({}, 1).max(axis=-1)", "pt.moveaxis(({})[:, None], 0, 1)[0]",
                         ).format(part)  # fmt: skip

    def mixing(self, part: str) -> str:
        """Records meet here."""
        return self.pick("({}).cumsum()", "({})[::-1]", "(({0}) - ({0}).mean())", "pt.special.softmax({})", "pt.sort({})", "pt.roll({}, 1)",
                         "(({0}) / (1 + abs({0}).max()))", "(({0})[0] + 0 * ({0}))", "pt.outer({0}, {0}).sum(axis=0)", "pt.cumprod({})",
                         "(({0})[:, None] - ({0})[None]).max(axis=1)", "(({0}) * ({0}).sum())", "pt.zeros_like({0}) + ({0})[-1]",
                         "pt.switch(({0}) > ({0}).mean(), 1.0, 0.0)", "pt.set_subtensor(({0})[:1], ({0})[-1:])", "({0})[pt.argsort({0})]",
                         "pt.dot(pt.outer({0}, {0}), {0})", "pt.concatenate([({0})[1:], ({0})[:1]])", "(({0}) + pt.max({0}))",
                         "pt.tile(({0})[:1], ({0}).shape[0])", "pt.repeat(({0})[-1:], ({0}).shape[0])", "pt.logsumexp({0}) + 0 * ({0})",
                         "(pt.tril(pt.outer(pt.ones_like({0}), {0}))).sum(axis=1)", "pt.linalg.norm({0}) + 0 * ({0})",
                         "pt.vectorize(lambda v: v * 2, signature='(n)->(n)')({0})", "pt.median({0}) + 0 * ({0})",
                         "pt.einsum('i,j->i', {0}, {0})", "pt.flip({0})", "pt.diag(pt.diag({0})).T.sum(axis=0)", "({0}).var() * ({0})",
                         ).format(part)  # fmt: skip

    def feature(self, depth: int) -> str:
        """One number per record, of data alone."""
        if self.odd and self.chance(0.4):
            self.odd -= 1
            return self.mixing(self.feature(max(depth - 1, 0)))
        if depth == 0 or self.chance(0.2):
            if self.chance(0.3):
                return self.of_matrix(self.covariate("X", "real", ("person", "item")))
            if self.chance(0.15):
                return f"(pt.as_tensor({self.index()}) * 1.0)"
            return self.covariate(self.pick("x", "x", "v"), "real")
        kind = self.rng.random()
        if kind < 0.4:
            return self.elementwise(self.feature(depth - 1))
        if kind < 0.6:
            return self.together(self.feature(depth - 1), self.feature(depth - 2 if depth > 1 else 0))
        if kind < 0.75:
            return self.reshaped(self.feature(depth - 1))
        return self.of_matrix(self.matrix(depth - 1))

    def matrix(self, depth: int) -> str:
        """Records by items, of data alone."""
        if depth <= 0 or self.chance(0.3):
            return self.covariate("X", "real", ("person", "item"))
        return self.pick(
            lambda: self.elementwise(self.matrix(depth - 1)),
            lambda: f"({self.matrix(depth - 1)} * ({self.feature(0)})[:, None])",
            lambda: f"(({self.feature(0)})[:, None] * np.arange(1.0, {self.items_long} + 1))",
            lambda: f"({self.matrix(depth - 1)}).T.T",
            lambda: f"({self.matrix(depth - 1)})[:, ::-1]",
        )()

    @property
    def items_long(self) -> int:
        return self.program.sizes["item"]

    def of_matrix(self, matrix: str) -> str:
        """A number per record from several."""
        last = self.items_long - 1
        return self.pick("({}).sum(axis=1)", "({}).mean(axis=-1)", "({}).max(axis=1)", "({}).T.sum(axis=0)", "({})[:, 0]", "({}).T[LAST]",
                         "({}) @ np.linspace(-1, 1, MANY)", "pt.dot(np.linspace(0, 1, MANY), ({}).T)",
                         "pt.logsumexp({}, axis=1)", "({}).prod(axis=1)", "pt.take({}, LAST, axis=1)", "({}).min(axis=-1)",
                         "pt.einsum('ij->i', {})", "pt.special.softmax({}, axis=-1)[:, 0]", "pt.tensordot({}, np.ones(MANY), axes=1)",
                         "({}).argmax(axis=1)", "({}).std(axis=1)", "pt.cumsum({}, axis=1)[:, -1]", "({})[:, [0]].sum(axis=1)",
                         "pt.sort({}, axis=1)[:, 0]", "pt.diagonal(({})[:, :, None] * np.eye(MANY), axis1=1, axis2=2).sum(axis=1)",
                         ).format(matrix).replace("MANY", str(last + 1)).replace("LAST", str(last))  # fmt: skip

    def cell(self, depth: int, real: bool = False) -> str:
        """One number per record, of unknowns and indices."""
        if self.odd and self.chance(0.4):
            self.odd -= 1
            return self.mixing(self.cell(max(depth - 1, 0), real))
        if depth == 0 or self.chance(0.2):
            index = self.index()
            return self.pick(
                lambda: f"{self.unknown(LEVELS)}[{index}]",
                lambda: f"({self.unknown(LEVELS)} * 2)[{index}]",
                lambda: f"{self.table(LEVELS, 2)}[{index}].sum(axis=1)",
                lambda: f"{self.table(LEVELS, 2)}[{index}, {self.index()}]",
                lambda: f"{self.table(LEVELS, 3)}[:, 1][{index}]",
                lambda: f"{self.table(LEVELS, 3)}[{index}][:, {self.rng.randrange(3)}]",
                lambda: f"{self.table(3, LEVELS)}.T[{index}].max(axis=-1)",
                lambda: f"pt.take({self.unknown(LEVELS)}, {index})",
                lambda: f"pt.switch(pt.eq({index}, 1), {self.unknown()}, {self.unknown()})",
            )()
        kind = self.rng.random()
        if kind < 0.35:
            return self.elementwise(self.cell(depth - 1, real))
        if kind < 0.7:
            return self.together(self.cell(depth - 1, real), self.cell(depth - 2 if depth > 1 else 0, real))
        if kind < 0.85:
            return self.reshaped(self.cell(depth - 1, real))
        return f"({self.unknown()} + {self.cell(depth - 1, real)})"

    def index(self) -> str:
        """The text of an index with one entry per record."""
        return self.covariate(
            self.pick("g", "g", "h"), "level", tensor=self.chance(0.5), dtype=self.pick("int64", "int64", "int8", "uint8")
        )

    # ---------- expressions: one number, one per item
    def mixed_number(self, part: str) -> str:
        """One number from all records."""
        return self.pick("({}).mean()", "({}).sum()", "({}).max()", "({})[0]", "({})[-1]", "pt.dot({0}, {0})", "({}).std()",
        "pt.logsumexp({})",
                         "({}).prod()", "({})[2:].min()", "pt.median({})", "({}).any()", "pt.sort({})[0]").format(part)  # fmt: skip

    def items(self, matrix: str, depth: int = 1) -> str:
        """One number per item from records by items: along the axis that is not the records'."""
        part = self.pick("({}).sum(axis=0)", "({}).mean(axis=0)", "({}).max(axis=0)", "({})[0]", "({})[-1]", "({}).T.sum(axis=1)",
        "({}).T[:, 0]",
                         "({}).prod(axis=0)", "({}).min(axis=0)", "({}).std(axis=0)", "pt.einsum('ij->j', {})", "({}).T.max(axis=-1)",
                         "pt.logsumexp({}, axis=0)", "pt.dot(pt.ones(({0}).shape[0]), {0})", "({}).cumsum(axis=0)[-1]",
                         "({}).T.mean(axis=1)",
                         "pt.take({}, 1, axis=0)", "pt.sort({}, axis=0)[0]", "({0}).sum(axis=0) / ({0}).shape[0]",
                         "({})[[0, 1]].sum(axis=0)",
                         "pt.special.softmax({}, axis=0)[0]", "pt.swapaxes({}, 0, 1)[:, 0]", "pt.diagonal(({0}).T @ ({0}))",
                         ).format(matrix)  # fmt: skip
        return self.elementwise(part) if depth and self.chance(0.3) else part
