"""Helpers for every room: array types, argument checks, text tables, progress bars, quantiles."""
