"""Extension list and the debug switch; everything else is in pyproject.toml.

LCM_FAST_DEBUG=1 builds the kernels with every run-time check on (bounds, None, overflow,
initialisation).
"""

import os

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = ("tokens", "frontier", "chunking", "text", "relevance", "replay", "bpe")
DEBUG = os.environ.get("LCM_FAST_DEBUG") == "1"

extensions = [
    Extension(
        f"lcm_fast.kernels._{name}",
        [f"csrc/{name}.pyx"],
        extra_compile_args=["-O1", "-g", "-UNDEBUG"] if DEBUG else ["-O3"],
    )
    for name in KERNELS
]

setup(
    ext_modules=cythonize(
        extensions,
        include_path=["csrc"],
        build_dir="build/cython-debug" if DEBUG else "build/cython",
        compiler_directives={
            "language_level": 3,
            "boundscheck": DEBUG,
            "wraparound": False,
            "initializedcheck": DEBUG,
            "nonecheck": DEBUG,
            "overflowcheck": DEBUG,
            "cdivision": not DEBUG,
            "embedsignature": True,
        },
    ),
)
