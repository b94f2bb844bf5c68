"""Pieces that every room uses: types of arrays, checks of arguments, tables, progress."""
