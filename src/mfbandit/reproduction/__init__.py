"""The paper's figures and tables, measured anew."""

from mfbandit.reproduction.reproducer import reproduce

__all__ = [
    "reproduce",
]
