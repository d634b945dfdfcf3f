"""Entry point of the command `health-assets`; it answers Ctrl-C before it imports anything large."""

import sys

INTERRUPTED = 130
"""Exit code of shells for a command that Ctrl-C ended."""


def main() -> None:
    """Run the command; a Ctrl-C while it still imports ends it without a stack trace, as later ones do."""
    try:
        from health_assets.core.importing import without_collections

        with without_collections():
            from health_assets.cli.commands import app

        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
