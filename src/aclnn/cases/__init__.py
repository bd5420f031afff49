"""Tables of cases: read, draw, run, resume."""
