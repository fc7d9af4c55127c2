"""What PyTensor and BLAS read when they are imported; imported before them, by conftest and by the process that plants mistakes."""

import os
import tempfile

# The suite compiles in a directory of its own, so that a canary in a compile cache would be found there.
# Parallel workers inherit the directory, so that the last word in the flags is theirs, too.
COMPILED = os.environ.setdefault("PYMC_DP_TEST_COMPILED", tempfile.mkdtemp(prefix="pymc_dp_compiled_"))
flags = [flag for flag in os.environ.get("PYTENSOR_FLAGS", "").split(",") if flag and not flag.startswith("base_compiledir=")]
# Where a variable was made is not looked up: a fifth of the time of whatever builds graphs. Nor is a C compiler started, for seconds
# at a time: what is fast is compiled by Numba.
os.environ["PYTENSOR_FLAGS"] = ",".join([f"base_compiledir={COMPILED}", "traceback__limit=0", "cxx=", *flags])
# Workers share the cores already, and threads that wait for one another take time from them.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
