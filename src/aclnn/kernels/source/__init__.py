"""Kernel sources in numba's language. Importing a module here imports numba: only native/jit.py does, on a cold cache.

A source does the items lo … hi − 1 of its work, on memory it knows by address; it has no arrays, raises nothing and
allocates nothing. Its bits must not depend on lo and hi, so that they do not depend on the number of threads.
"""
