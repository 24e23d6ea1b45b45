"""What a skill is: a class with a name, a description, a side-effect class and one method.

A skill is given what it declared and nothing else: the folders, the secrets and the model below. In a test, hand
them to the constructor: `WriteNoteSkill(folders={"notes": tmp_path})`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike
    from pathlib import Path
    from typing import ClassVar

__all__ = ["BaseSkill", "Model", "ModelUnavailable", "NotDeclared"]


class NotDeclared(Exception):
    """The skill asked for a folder or a secret that its proposal does not list."""


class ModelUnavailable(Exception):
    """There is no model to ask, or it did not answer."""


class Model:
    """A model to ask. This one is for skills that have none."""

    def generate(self, prompt: str) -> str:
        """Gives what the model answers to a prompt."""
        raise ModelUnavailable("this skill has no model")

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Gives a vector for each text."""
        raise ModelUnavailable("this skill has no model")


class BaseSkill:
    """The base of every skill."""

    name: ClassVar[str] = ""
    description: ClassVar[str] = ""
    side_effect_class: ClassVar[str] = ""

    def __init__(
        self,
        folders: Mapping[str, str | PathLike[str]] | None = None,
        secrets: Mapping[str, str] | None = None,
        model: Model | None = None,
    ) -> None:
        self._folders = dict(folders or {})
        self._secrets = dict(secrets or {})
        self.model = model if model is not None else Model()

    def folder(self, name: str) -> Path:
        """Gives the root of a folder that the proposal lists, by its path in the project."""
        from pathlib import Path

        if name not in self._folders:
            raise NotDeclared(f"the folder {name!r} is not listed in the proposal")
        return Path(self._folders[name])

    def secret(self, name: str) -> str:
        """Gives the value of a secret that the proposal lists."""
        if name not in self._secrets:
            raise NotDeclared(f"the secret {name!r} is not listed in the proposal")
        return self._secrets[name]

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        """Does the work: from an input of the proposal's schema to an output of it."""
        raise NotImplementedError
