"""Server-sent events out of bytes that arrive in any pieces.

Follows https://html.spec.whatwg.org/multipage/server-sent-events.html for line ends (LF, CRLF, CR), comments, fields and data over several lines. Works on bytes
throughout: a multibyte character may be cut anywhere, and is only decoded when its whole event is there.
"""

from __future__ import annotations

from collections.abc import Sequence

LIMIT = 16 << 20
"""Bytes of one event; more is an error, lest a broken server fill the client's memory."""
BOM = b"\xef\xbb\xbf"


class Splitter:
    """Splits one stream. Any way of cutting the stream into pieces gives the same payloads in the same order."""

    __slots__ = ("rest",)

    def __init__(self) -> None:
        self.rest = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """Payloads (the `data` fields) of the events that this piece completes. Raises `ValueError` past `LIMIT`."""
        text = self.rest + piece if self.rest else piece
        held = b""
        if b"\r" in text:
            # A CR at the very end may be half of a CRLF: it waits for the next byte.
            if text.endswith(b"\r"):
                text, held = text[:-1], b"\r"
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        end = text.rfind(b"\n\n")
        if end < 0:
            self.rest = text + held
            if len(self.rest) > LIMIT:
                raise ValueError("event too long")
            return []
        self.rest = text[end + 2 :] + held
        payloads = []
        for block in text[:end].split(b"\n\n"):
            if block.startswith(b"data: ") and b"\n" not in block:
                payloads.append(block[6:])
            elif (payload := _payload(block)) is not None:
                payloads.append(payload)
        return payloads

    def flush(self) -> Sequence[bytes]:
        """Payload of a last event that the stream ended without the blank line after it (the standard drops it; servers do this to `[DONE]`)."""
        text, self.rest = self.rest.replace(b"\r", b"\n").strip(b"\n"), b""
        payload = _payload(text)
        return () if payload is None else (payload,)


def _payload(block: bytes) -> bytes | None:
    """Data of one event's lines; None where it has none (comments, keep-alives, other fields)."""
    data = []
    for line in block.removeprefix(BOM).split(b"\n"):
        if line.startswith(b"data:"):
            data.append(line[6:] if line.startswith(b"data: ") else line[5:])
        elif line == b"data":
            data.append(b"")
    return b"\n".join(data) if data else None
