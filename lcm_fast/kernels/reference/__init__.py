"""Pure-Python twins of the compiled kernels, one module each: the specification, item by item.

Nothing here is tuned. Values, exception classes and messages equal those of `csrc` (architecture,
section 6).
"""
