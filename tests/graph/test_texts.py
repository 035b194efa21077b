"""Strings in one block of bytes are as good as a tuple of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relwalk.graph.texts import MaybeTexts, Packer, TextIndex, Texts

WORDS = st.lists(st.text(st.characters(codec="utf-8"), max_size=5), max_size=20)


def packed(words: list[str]) -> Texts:
    packer = Packer()
    packer.add(word.encode() for word in words[:3])
    packer.add(word.encode() for word in words[3:])
    assert packer.count == len(words)
    return packer.texts()


@given(WORDS)
def test_texts_are_what_was_packed(words: list[str]) -> None:
    found = packed(words)
    assert len(found) == len(words) and found == tuple(words) and tuple(words) == found and found == packed(words)
    assert list(found) == words and [found[i] for i in range(len(words))] == words
    assert found[1:4] == tuple(words[1:4]) and found[-2:] == tuple(words[-2:])
    assert found.data == "\0".join(words).encode() and hash(found) == hash(tuple(words))
    assert found != (*words, "one more")
    with pytest.raises(IndexError):
        found[len(words)]


def test_lines_are_texts() -> None:
    packer = Packer()
    packer.add([b"a"])
    packer.add_lines("\nbé\nc\n".encode())
    assert packer.texts() == ("a", "", "bé", "c")
    packer.add([b"\xff"])
    with pytest.raises(UnicodeDecodeError):
        packer.texts()


@given(st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=3), max_size=20))
def test_some_may_not_be_there(words: list[str | None]) -> None:
    there = np.array([word is not None for word in words], np.bool_)
    found = MaybeTexts(packed([word for word in words if word is not None]), there)
    assert found == tuple(words) and [found[i] for i in range(len(words))] == words and found[1:3] == tuple(words[1:3])


@given(WORDS)
def test_every_place_of_a_text_is_found(words: list[str]) -> None:
    index = TextIndex(words, len(words), words.__getitem__)
    for word in {*words, "not there"}:
        assert index.places(word) == [place for place, other in enumerate(words) if other == word]


def test_texts_with_the_same_hash_are_told_apart() -> None:
    same = TextIndex([7, 7, 7], 3, ("a", "b", "a").__getitem__)
    same._hashes[:] = np.int64(hash("a")).astype(np.uint32)
    assert same.places("a") == [0, 2]
