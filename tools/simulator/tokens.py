"""The embedded engine's own small language: a tokenizer for text, and the answers it gives.

Answers are code words of four letters, one a token, so that an answer that comes back in a conversation's next turn is read as the same tokens.
"""

from __future__ import annotations

import re
from array import array
from hashlib import blake2b
from zlib import crc32

_LETTERS = "abcdefghijklmnoprstu"
_PAIRS = [a + b for a in _LETTERS for b in _LETTERS]
_PAIR_BYTES = [pair.encode() for pair in _PAIRS]
_PLACE = {pair: index for index, pair in enumerate(_PAIRS)}
_PIECES = re.compile(r" ?\S{1,4}|\s")
_FIRST = 256
"""Smallest id of a word, as the ids below stand for single bytes in most vocabularies."""
TOKEN_BYTES = 5
"""Every answer token's length as text: a space and four letters."""
CHUNK = 16
"""Tokens that are drawn together: as many as one BLAKE2b digest of 64 bytes holds."""


def encode(text: str, vocab: int) -> list[int]:
    """Token ids of a text: pieces of up to four characters with the space before them. Deterministic, in any process."""
    return [_id(piece, vocab) for piece in _PIECES.findall(text)]


def _id(piece: str, vocab: int) -> int:
    if len(piece) == TOKEN_BYTES and piece[0] == " ":
        high, low = _PLACE.get(piece[1:3]), _PLACE.get(piece[3:])
        if high is not None and low is not None and _FIRST <= high * 400 + low < vocab:
            return high * 400 + low
    return _FIRST + crc32(piece.encode("utf-8", "surrogatepass")) % (vocab - _FIRST)


def word(token: int) -> bytes:
    """An answer token's text; five bytes of ASCII, safe inside JSON."""
    return b" " + _PAIR_BYTES[token // 400 % 400] + _PAIR_BYTES[token % 400]


class Answer:
    """The tokens that the model gives to one prompt: the same for the same prompt, model and precision, in any process.

    `lossy` names the precision where it isn't the model's own: such an answer is the same up to some token, and another from there on.
    """

    __slots__ = ("_key", "_split", "seed", "vocab")

    def __init__(self, prompt: bytes, model: str, lossy: str, vocab: int) -> None:
        self.vocab = vocab
        digest = blake2b(prompt, digest_size=16, key=model.encode()[:64]).digest()
        self.seed = int.from_bytes(digest[:8], "little")
        self._key = digest + lossy.encode()
        self._split = 1 + digest[8] % 8 if lossy else 1 << 62

    def chunk(self, number: int) -> list[int]:
        """Tokens `CHUNK * number` and on, `CHUNK` of them."""
        key = self._key if number >= self._split else self._key[:16]
        drawn = memoryview(blake2b(key + number.to_bytes(8, "little")).digest()).cast("I")
        room = self.vocab - _FIRST
        return [_FIRST + value % room for value in drawn]

    def natural_length(self) -> int:
        """Tokens until the model would end its answer by itself: 16 to about 900, mostly some hundred."""
        return 16 + int(100 * (((self.seed >> 11) & 0x1FFFFF) / 0x1FFFFF * 2.96) ** 2)


def pack(tokens: list[int]) -> bytes:
    """Token ids as bytes. Raises OverflowError or TypeError for what isn't a list of small non-negative integers."""
    return array("I", tokens).tobytes()
