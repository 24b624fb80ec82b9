from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewright.tools.traffic.sse import LIMIT, Splitter

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=12)
END = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A stream with any line ends, comments, other fields and several data lines an event, and the payloads that it carries."""
    stream, payloads = "", []
    for kind in draw(st.lists(st.sampled_from(["event", "comment", "typed", "many", "blank"]), max_size=8)):
        end = draw(END)
        text = draw(TEXT)
        if kind == "comment":
            stream += f":{text}{end}{end}"
        elif kind == "blank":
            stream += end
        else:
            lines = [text] if kind != "many" else [text, draw(TEXT)]
            stream += (f"event: x{end}" if kind == "typed" else "") + "".join(f"data: {line}{end}" for line in lines) + end
            payloads.append("\n".join(lines).encode())
    return stream.encode(), payloads


@given(streams(), st.lists(st.integers(0, 400), max_size=12))
def test_any_split_of_the_bytes_gives_the_same_events(made: tuple[bytes, list[bytes]], cuts: list[int]) -> None:
    stream, payloads = made
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    splitter, found = Splitter(), []
    for begin, end in pairwise(places):
        found += splitter.feed(stream[begin:end])
    found += splitter.flush()
    assert found == payloads


@given(streams())
def test_one_byte_at_a_time(made: tuple[bytes, list[bytes]]) -> None:
    stream, payloads = made
    splitter = Splitter()
    found = [payload for k in range(len(stream)) for payload in splitter.feed(stream[k : k + 1])]
    assert [*found, *splitter.flush()] == payloads


def test_an_event_comes_out_with_its_last_byte_and_not_later() -> None:
    splitter = Splitter()
    assert list(splitter.feed(b"data: a\n")) == []
    assert list(splitter.feed(b"\n")) == [b"a"]
    assert list(splitter.feed(b"data: b\r\n\r\n")) == [b"b"]


def test_a_character_cut_in_two_is_whole_again() -> None:
    stream = "data: 日本語\n\n".encode()
    splitter = Splitter()
    found = [*splitter.feed(stream[:8]), *splitter.feed(stream[8:])]
    assert found[0].decode() == "日本語"


def test_a_last_event_without_its_blank_line_is_not_lost() -> None:
    splitter = Splitter()
    assert list(splitter.feed(b"data: [DONE]")) == []
    assert list(splitter.flush()) == [b"[DONE]"]
    assert list(splitter.flush()) == []


def test_an_endless_event_is_refused() -> None:
    splitter = Splitter()
    with pytest.raises(ValueError, match="too long"):
        splitter.feed(b"x" * (LIMIT + 1))
