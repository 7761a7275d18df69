"""The reciter's tokenizer: one token a character, 96 in all, so that every token can be read."""

from __future__ import annotations

# Id 0 is the end of a text, and what a padding row feeds in; 1 is a new line; 2 … 95 are ' ' … '}'. The last
# printable character of ASCII, '~', would be the 97th: it is left out.
CHARACTERS = "\n" + "".join(map(chr, range(ord(" "), ord("~"))))


class CharacterTokenizer:
    """Characters to ids and back. ``vocab`` is the number of ids, ``end`` the id that ends a text."""

    end = 0
    vocab = 1 + len(CHARACTERS)

    def encode(self, text: str) -> list[int]:
        """One id for each character, without the end. ValueError names a character that has none."""
        for place, character in enumerate(text):
            if character not in CHARACTERS:
                raise ValueError(
                    f"character {place} of the text is {character!r}; expected a new line or printable ASCII "
                    "other than '~': replace it"
                )
        return [1 + CHARACTERS.index(character) for character in text]

    def decode(self, ids: list[int]) -> str:
        """The characters of the ids, the end written as nothing; ValueError for an id that is not there."""
        for place, index in enumerate(ids):
            if not 0 <= index < self.vocab:
                raise ValueError(f"id {place} is {index}; expected 0 to {self.vocab - 1}")
        return "".join(CHARACTERS[index - 1] for index in ids if index != self.end)


tokenizer = CharacterTokenizer()
