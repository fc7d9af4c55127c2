"""What a model may hold beside its arrays: a closed list of operations and libraries, and of how many numbers.

The rules of ``opaque`` and ``pickled`` refuse what is not named here.
"""

import sys
from os import sep
from types import ModuleType

from pymc_dp.privacy.guard import PACKAGE

MOST_NUMBERS = 8
"""So many numbers may the functions of one variable hold together: settings, not data."""
MOST_TEXT = 100
"""The longest text that counts as a name."""
MOST_BITS = 64
"""The longest integer that counts as one number."""
TOO_MUCH = f"more than {MOST_NUMBERS} numbers, or a long number or text"
"""One reason for all three, because records that are written out may be one or the other."""
LIBRARIES = {
    *("pytensor", "pymc", "pymc_dp", "numpy", "scipy"),
    *("abc", "builtins", "cmath", "collections", "functools", "itertools", "math", "operator", "types", "typing", "warnings"),
}
"""Packages whose own functions and classes hold no records."""
_NAMES = """
    AND Abs Add ArcCos ArcCosh ArcSin ArcSinh ArcTan ArcTan2 ArcTanh Cast Ceil Clip Complex Composite Conj Cos Cosh EQ Exp Exp2 Expm1 Floor
    GE GT Identity Imag IntDiv Invert IsInf IsNan LE LT Log Log10 Log1p Log2 Maximum Minimum Mod Mul NEQ Neg OR Pow Real Reciprocal
    RoundHalfAwayFromZero RoundHalfToEven Second Sign Sin Sinh Sqr Sqrt Sub Switch Tan Tanh TrueDiv Trunc XOR ScalarLoop
    BetaInc BetaIncInv Erf Erfc Erfcinv Erfcx Erfinv Gamma GammaInc GammaIncC GammaIncCInv GammaIncInv GammaLn Grad2F1Loop Hyp2F1 I0 I0e I1
    I1e Ive J0 J1 Jv Kve Log1mexp NdtriExp Owens_t PolyGamma Psi Sigmoid Softplus TriGamma
    ARange Alloc AllocDiag AllocEmpty Choose ExtractDiag Eye Join MakeVector Nonzero PermuteRowElements ScalarFromTensor Split
    TensorFromScalar BatchedDot BatchedDiag Blockwise Einsum CAReduce DimShuffle Elemwise Bartlett CpuContiguous CumOp FillDiagonal
    FillDiagonalOffset RavelMultiIndex Repeat SearchsortedOp Unique UnravelIndex Fourier BlockDiagonal BaseBlockDiagonal Cholesky Eig Eigh
    Eigvalsh LU LUFactor PivotToPermutations QR QZ Schur SVD MatrixInverse MatrixPinv TensorInv Expm KroneckerProduct Solve SolveSylvester
    Lstsq TensorSolve CholeskySolve SolveTriangular Det SLogDet All Any Argmax Dot Max Min MulWithoutZeros Prod ProdWithoutZeros Sum Pad
    JoinDims SplitDims Reshape Shape Shape_i SpecifyShape Unbroadcast Convolve1d Convolve2d ArgSortOp SortOp LogAddExp LogSoftmax LogSumExp
    Softmax XLog1PY XLogY AdvancedIncSubtensor AdvancedIncSubtensor1 AdvancedSubtensor AdvancedSubtensor1 IncSubtensor Subtensor MakeSlice
    DeepCopyOp ViewOp TypeCastingOp IfElse LazyIfElse DisconnectedGrad GradClip GradScale UndefinedGrad ZeroGrad SpecifyAssumptions
    Assert CheckAndRaise CheckParameterValue TruncationCheck Scan OpFromGraph
    Rename TensorFromXTensor XTensorFromTensor Index IndexUpdate RNGToXRNG XRNGToRNG XCumReduce XReduce Broadcast Concat ExpandDims Squeeze
    Stack Transpose UnStack XBlockwise XElemwise XRV
    BernoulliRV BetaBinomialRV BetaRV BinomialRV CategoricalRV CauchyRV DirichletRV ExponentialRV GammaRV GenGammaRV GeometricRV GumbelRV
    HalfCauchyRV HalfNormalRV HyperGeometricRV IntegersRV InvGammaRV LaplaceRV LogNormalRV LogisticRV MultinomialRV MvNormalRV NegBinomialRV
    NormalRV ParetoRV PoissonRV StudentTRV TriangularRV TruncExponentialRV UniformRV VonMisesRV WaldRV WeibullRV AsymmetricLaplaceRV
    BetaClippedRV ExGaussianRV FlatRV HalfFlatRV HalfStudentTRV InterpolatedRV KumaraswamyRV MoyalRV PolyaGammaRV RiceRV SkewNormalRV
    SkewStudentTRV TruncatedNormalRV WeibullBetaRV DiscreteUniformRV DiscreteWeibullRV DiracDeltaRV PartialObservedRV CensoredRV TruncatedRV
    MixtureRV _HurdleRV CARRV DirichletMultinomialRV ICARRV KroneckerNormalRV LKJCorrRV MatrixNormalRV MvStudentTRV PrecisionMvNormalRV
    StickBreakingWeightsRV SymbolicMVNormalUsedInternally WishartRV ZeroSumNormalRV _LKJCholeskyCovRV AutoRegressiveRV EulerMaruyamaRV
    GARCH11RV RandomWalkRV MinibatchRandomVariable
    ModelDeterministic ModelFreeRV ModelNamed ModelObservedRV ModelPotential
"""
OPERATIONS = frozenset(_NAMES.split())
"""Classes of PyTensor's and PyMC's operations that compute from their inputs, their graphs and plain settings alone."""
PLAIN_TYPES = {"TensorType", "ScalarType", "XTensorType", "NoneTypeT", "SliceType", "RandomGeneratorType", "XRandomGeneratorType"}
"""Types of constants and of shared variables whose values are numbers, shapes or generators."""


OF_EXTRAS = {"GenExtremeRV": "pymc_extras.distributions.continuous"}
"""Distributions of ``pymc_extras`` that may pass, with where they are: each has numbers for parameters and holds nothing."""


def is_of_extras(kind: type) -> bool:
    """Whether a class is one of ``OF_EXTRAS``, where that package has been imported."""
    home = sys.modules.get(OF_EXTRAS.get(kind.__name__, ""))
    return home is not None and getattr(home, kind.__name__, None) is kind


def is_library(module: ModuleType) -> bool:
    """Whether a module is that of a trusted library; of this package only if its file is in it: folders of one's own can be added."""
    top, name = module.__name__.partition(".")[0], module.__name__
    if top == "pymc_dp" and not (getattr(module, "__file__", None) or "").startswith(f"{PACKAGE}{sep}"):
        return False
    return top in LIBRARIES and sys.modules.get(name) is module


def is_of_a_library(thing: object) -> bool:
    """Whether a class or function is the one that a trusted library has under its name."""
    home, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None)
    of_that_name: object = sys.modules.get(home) if isinstance(home, str) else None
    if not isinstance(of_that_name, ModuleType) or not is_library(of_that_name) or not isinstance(name, str):
        return False
    for part in name.split("."):
        of_that_name = getattr(of_that_name, part, None)
    return of_that_name is thing
