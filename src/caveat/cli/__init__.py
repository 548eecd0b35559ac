"""The command line: parse, call one public function, print."""

from caveat.cli.entry import main

__all__ = ["main"]
