"""stub"""
from __future__ import annotations
def story(fast: bool = False) -> None:
    """Play a small story."""
