"""Ids in paths: any text, also with slashes and line breaks, as logs may have such.

What belongs here: the convertor `id` of routes, as in `/agents/{agent_id:id}`. What does not: the routes.
"""

from starlette.convertors import PathConvertor, register_url_convertor


class _IdConvertor(PathConvertor):
    regex = "(?s:.*)"  # in that of `path`, a dot is no line break


def register() -> None:
    """Make the convertor known, before routes that name it are declared."""
    register_url_convertor("id", _IdConvertor())
