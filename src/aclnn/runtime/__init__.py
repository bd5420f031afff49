"""WHEN things happen: phase 1 checks and plans, phase 2 executes on a stream."""
