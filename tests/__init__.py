"""The tests of conformkit, in folders like those of the product."""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # several workers share the cores: more threads only wait
    os.environ.setdefault(variable, "1")  # now: NumPy is not imported yet
