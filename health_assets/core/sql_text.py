"""Texts within SQL, where a parameter cannot stand. SQL itself does not belong here."""


def quoted(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"
