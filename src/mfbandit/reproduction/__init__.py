"""The paper's figures and tables, computed again."""

from mfbandit.reproduction.reproducer import reproduce

__all__ = [
    "reproduce",
]
