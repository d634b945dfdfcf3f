"""How sentences say numbers. What does not belong here: what the sentences are about."""


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun, whose plural is said where it is not the noun with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
