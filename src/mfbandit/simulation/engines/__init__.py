"""Compiled engines, each making the plays of the plain formula."""
