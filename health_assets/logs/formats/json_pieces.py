"""Reading a JSON document piece by piece, so that a half-written file gives all that is whole, in bounded memory.

What belongs here: JSON. What does not: what any document means.
"""

import codecs
import json
from collections.abc import Iterator
from typing import Any

from health_assets.logs.formats.foreign_lines import READ_TEXT_BYTES, Blocks, Damage, Record

MAX_VALUE_CHARACTERS = 64 << 20
CUT_OFF = "the document ends early: it is cut off"
_BLANK = " \t\r\n"


class DocumentError(Exception):
    """The document cannot be read from here on.

    Args:
        reason: why.
        piece: the text from there.
    """

    def __init__(self, reason: str, piece: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.piece = piece[:READ_TEXT_BYTES]


class Document:
    """Walks through a JSON document from front to back.

    Args:
        blocks: bytes of the document.
    """

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._parse = json.JSONDecoder().raw_decode
        self._text = ""
        self._place = 0
        self._is_whole = False

    def members(self) -> Iterator[str]:
        """Names of an object's members; the caller reads each value, by `value`, `elements` or `members`.

        Raises:
            DocumentError: it is damaged or no object.
        """
        self._expect("{")
        if self._peek() == "}":
            self._place += 1
            return
        while True:
            name = self.value() if self._peek() == '"' else None
            if not isinstance(name, str):
                raise self._error("not valid JSON")
            self._expect(":")
            yield name
            if self._more_follow("}"):
                continue
            return

    def elements(self) -> Iterator[Any]:
        """Elements of a list, read one after another.

        Raises:
            DocumentError: it is damaged or no list.
        """
        return (value for value, _ in self._elements())

    def _elements(self) -> Iterator[tuple[Any, str]]:
        self.enter_list()
        if self._peek() == "]":
            self._place += 1
            return
        while True:
            yield self._next_value()
            if not self._more_follow("]"):
                return

    def value(self) -> Any:
        """The value that comes next, whatever it is.

        Raises:
            DocumentError: it is damaged.
        """
        value, _ = self._next_value()
        return value

    def enter_list(self) -> None:
        """Step into a list, so that its first element comes next.

        Raises:
            DocumentError: it is damaged or no list.
        """
        self._expect("[")

    def texts(self) -> Iterator[str]:
        """Elements of a list as they are written, read one after another.

        Raises:
            DocumentError: it is damaged or no list.
        """
        return (text for _, text in self._elements())

    def text(self) -> str:
        """The value that comes next, as it is written.

        Raises:
            DocumentError: it is damaged.
        """
        _, text = self._next_value()
        return text

    def _next_value(self) -> tuple[Any, str]:
        self._peek()
        while True:
            try:
                value, end = self._parse(self._text, self._place)
            except json.JSONDecodeError:
                if self._read_more():
                    continue
                reason = CUT_OFF if self._ends_early() else "not valid JSON"
                raise self._error(reason) from None
            except (ValueError, RecursionError) as error:  # a number or a nesting beyond what Python takes
                raise self._error(f"JSON that cannot be read: {error}") from None
            if end < len(self._text):
                text, self._place = self._text[self._place : end], end
                return value, text
            if self._read_more():
                continue
            if isinstance(value, int | float) and not isinstance(value, bool):  # nobody knows whether it went on
                raise self._error(CUT_OFF)
            text, self._place = self._text[self._place :], len(self._text)
            return value, text

    def finish(self) -> None:
        """Make sure that nothing follows.

        Raises:
            DocumentError: something does.
        """
        if self._peek(may_end=True):
            raise self._error("something follows the end of the document")

    def peek(self) -> str:
        """The character with which the next value starts; empty at the end."""
        return self._peek(may_end=True)

    def _more_follow(self, closing: str) -> bool:
        character = self._peek()
        self._place += 1
        if character == ",":
            return True
        if character == closing:
            return False
        self._place -= 1
        raise self._error("not valid JSON")

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._error("not valid JSON")
        self._place += 1

    def _peek(self, *, may_end: bool = False) -> str:
        while True:
            while self._place < len(self._text) and self._text[self._place] in _BLANK:
                self._place += 1
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._read_more():
                if may_end:
                    return ""
                raise self._error(CUT_OFF)

    def _read_more(self) -> bool:
        """Read until what is left to parse has doubled, so that trying again costs no more than the reading did."""
        left = self._text[self._place :]
        if len(left) > MAX_VALUE_CHARACTERS:
            raise self._error(f"a record is longer than {MAX_VALUE_CHARACTERS >> 20} Mi characters")
        pieces, wanted = [left], max(len(left), 1)
        while wanted > 0 and not self._is_whole:
            block = next(self._blocks, None)
            if isinstance(block, Damage):
                raise DocumentError(block.reason, left)
            try:
                pieces.append(self._decode(block or b"", final=block is None))
            except UnicodeDecodeError as error:
                raise DocumentError("not valid UTF-8", left) from error
            self._is_whole = block is None
            wanted -= len(pieces[-1])
        self._text, self._place = "".join(pieces), 0
        return len(self._text) > len(left)

    def _ends_early(self) -> bool:
        """Whether what is left is the beginning of something valid: then the parser stumbles at the very end only."""
        try:
            self._parse(self._text, self._place)
        except json.JSONDecodeError as error:
            return error.pos >= len(self._text.rstrip()) or error.msg.startswith(("Unterminated", "Invalid \\u"))
        return False

    def _error(self, reason: str) -> DocumentError:
        return DocumentError(reason, self._text[self._place : self._place + READ_TEXT_BYTES])


def first_listed(head: bytes, list_name: str) -> Record:
    """Members of the first element of a list that a document's object has; none where it has no such list.

    Of the list `*` they are those of its first member. A member whose value is not whole in the `head` is None.
    """
    document = Document(iter([head]))
    found: Record = {}
    try:
        for name in document.members():
            if list_name in (name, "*"):
                if list_name != "*":
                    document.enter_list()
                for member in document.members():
                    found[member] = None
                    found[member] = document.value()
                break
            document.value()
    except DocumentError:
        pass  # the head ends somewhere within the document
    return found


def opening(head: bytes) -> tuple[str, Record]:
    """The beginning of a document: its first character, and the members of its object or of its list's first element.

    A member whose value is not whole in the `head` has the value None; unreadable heads have no members.
    """
    document = Document(iter([head]))
    found: Record = {}
    first = ""
    try:
        first = document.peek()
        if first == "[":
            document.enter_list()
        for name in document.members():
            found[name] = None
            found[name] = document.value()
    except DocumentError:
        pass  # the head ends somewhere within the document
    return first, found
