"""Shams stay sealed until the campaign closes: the ledger holds a commitment to every hypothesis's nature, and afterwards what opens it."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from pathlib import Path

from ..contract.base import canonical
from .records import Nature, Opening


def commit(nature: Nature, salt: str) -> str:
    """SHA-256 (hex) of salt and nature. Without the salt (128 random bits) it tells nothing."""
    return hashlib.sha256(f"{salt}:{nature}".encode()).hexdigest()


def opens(seal: str, opening: Opening) -> bool:
    """The opening is what the seal was made of."""
    return commit(opening.nature, opening.salt) == seal


class SealBook:
    """Salts and natures of a running campaign, in one file that only its owner may read.

    Keep it out of the project's folder: whatever can be read by the crew must not tell.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def seal(self, hypothesis: str, nature: Nature) -> str:
        """The commitment for the ledger; a second call for the same hypothesis gives the same one."""
        book = self._read()
        if hypothesis not in book:
            book[hypothesis] = Opening(hypothesis=hypothesis, nature=nature, salt=secrets.token_hex(16))
            self._write(book)
        return commit(book[hypothesis].nature, book[hypothesis].salt)

    def nature(self, hypothesis: str) -> Nature | None:
        opening = self._read().get(hypothesis)
        return opening and opening.nature

    def openings(self) -> tuple[Opening, ...]:
        """For `close_campaign`."""
        return tuple(self._read().values())

    def _read(self) -> dict[str, Opening]:
        if not self.path.is_file():
            return {}
        return {raw["hypothesis"]: Opening.model_validate(raw) for raw in json.loads(self.path.read_bytes())}

    def _write(self, book: dict[str, Opening]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as target:
            target.write(canonical([opening.model_dump(mode="json") for opening in book.values()]))
            target.flush()
            os.fsync(target.fileno())
        new.replace(self.path)
