"""README.md for a package index: `python docs/absolute_links.py https://github.com/OWNER/NAME v1.2.3` rewrites it.

What belongs here: making whole addresses, in a repository at a version, of relative links. Other pages, which no index
shows, keep theirs.
"""

import re
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
RELATIVE = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)\s]+)\)")


def absolute(page: str, repository: str, version: str) -> str:
    """Rewrite the relative links of a page at the top of a repository.

    Args:
        page: Markdown.
        repository: address of the repository, like `https://github.com/OWNER/NAME`.
        version: tag, branch or commit.

    Returns:
        The same page. Links lead to the file as a page, pictures to its bytes.
    """
    base = repository.rstrip("/")

    def whole(link: re.Match[str]) -> str:
        view = "raw" if link[1] else "blob"
        return f"{link[1]}{link[2]}({base}/{view}/{version}/{link[3]})"

    return RELATIVE.sub(whole, page)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python docs/absolute_links.py REPOSITORY VERSION")
    README.write_text(absolute(README.read_text(encoding="utf-8"), *sys.argv[1:]), encoding="utf-8")
