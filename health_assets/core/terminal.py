"""Text from outside, made fit for a terminal: whoever writes a log or answers a request must not command the screen."""


def printable(text: str, most: int = 200) -> str:
    """Text from a stranger as a terminal may show it: one line, without control characters, cut at `most`."""
    clean = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text[:most]
    )
    return clean if len(text) <= most else f"{clean}…"
