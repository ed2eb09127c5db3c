r"""The names of local files as results, logs and receipts write them.

A name on a local disk is bytes, and these need not be UTF-8. JSON, Arrow and UTF-8
streams cannot hold such a name, so each byte that is not UTF-8 is written as Python's
`backslashreplace` writes it:

    bytes of the name     written
    caf\303\251.txt       café.txt      UTF-8 stays as it is
    caf\351.txt           caf\xe9.txt   four characters for the byte 0xe9
    a\xe9.txt             a\x5cxe9.txt  a backslash that would be mistaken for this

`local_name(written_name(name)) == name` for every name.
"""

import os
import re

# What `written_name` writes; a name that holds it already has its backslash escaped.
_ESCAPE = re.compile(r"\\x(5c|[89a-f][0-9a-f])")


def written_name(name: str) -> str:
    """A name as it is written, of one as `os` gives it (with surrogate escapes)."""
    if "\\" in name:
        name = _ESCAPE.sub(lambda found: rf"\x5c{found[0][1:]}", name)
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def local_name(written: str) -> str:
    """The name as `os` takes it, of one that `written_name` gave."""
    return _ESCAPE.sub(_unescape, written) if "\\" in written else written


def _unescape(found: re.Match[str]) -> str:
    byte = int(found[1], 16)
    # The surrogate that stands for a byte that is not UTF-8, see PEP 383.
    return chr(0xDC00 + byte) if byte >= 0x80 else chr(byte)


def written_argument(argument: str) -> str:
    """An argument of the command line with a path, where bytes need not be UTF-8.

    The path may have been written already, so that no backslash is escaped.
    """
    return os.fsencode(argument).decode("utf-8", "backslashreplace")
