"""Settings of a cluster as they are typed: `resizeInterval=30s`.

Why: who tries something out changes one number, and has no file for it.
Owns: reading such pairs; what a value means is said where files are read (`specs.scenarios`).
Must not: know a setting by name.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from optimus.api.specs.fields import nearest
from optimus.api.specs.scenarios import SettingsSpec
from optimus.model.settings import Settings

_WORDS = {"true": True, "false": False}


class SettingsError(ValueError):
    """What is wrong with the first pair that cannot be used."""


def with_settings(base: Settings, pairs: Sequence[str]) -> Settings:
    """`NAME=VALUE`, over what is there; the last one counts."""
    known = sorted(map(to_camel, SettingsSpec.model_fields))
    for pair in pairs:
        name, sign, text = (part.strip() for part in pair.partition("="))
        if not sign or not text:
            raise SettingsError(f"{pair!r} has no value: write NAME=VALUE, such as resizeInterval=30s")
        if name not in known:
            raise SettingsError(f"there is no setting {name}; {nearest(name, known)}")
        value = int(text) if text.isascii() and text.isdigit() else _WORDS.get(text.lower(), text)
        try:
            base = SettingsSpec.model_validate({name: value}).to_settings(base)
        except ValidationError as error:
            first = error.errors()[0]
            raise SettingsError(f"{name}: {first.get('ctx', {}).get('message', first['msg'])}") from None
    return base
