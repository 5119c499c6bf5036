"""Docstrings as the API pages need them: a section `Example:` holds a program, not prose.

griffe knows the plural only, and sets anything under the singular as running text.
"""

import re
from typing import Any

import griffe

SINGULAR = re.compile(r"^( *)Example:$", re.MULTILINE)


class ExampleSections(griffe.Extension):
    """Reads `Example:` as `Examples:`."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each object that griffe has read."""
        if obj.docstring is not None:
            obj.docstring.value = SINGULAR.sub(r"\1Examples:", obj.docstring.value)
