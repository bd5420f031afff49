"""The small language contracts are written in.

`expr`: numbers that depend on a call (a dimension, an attribute, a formula). `rules`: the closed vocabulary of
rules, each with its sentences in two languages. `model`: arguments and operators. `check`: the first broken rule of
a call. `cases`: valid calls.
"""
