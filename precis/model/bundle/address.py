"""Addresses that stand in place of the folder of a bundle: a model behind an endpoint,
and a bundle that comes with the package.
"""

import os
import re

from precis.model.errors import UsageError

SCHEME = "openai"
_BUILTIN = "builtin:"
BUILTIN_SELECTOR = f"{_BUILTIN}news-en"
_ADDRESS = re.compile(
    rf"{SCHEME}(\+https?)?://([^\s/?#@:]+|\[[^\s/?#@]+\])(:\d+)?(/[^\s?#]*)?#(.+)"
)


def is_endpoint(bundle: str) -> bool:
    """Whether a bundle is a server's, and no folder."""
    return bundle.startswith((f"{SCHEME}:", f"{SCHEME}+"))


def parse_address(bundle: str) -> tuple[str, str]:
    """The URL up to `/v1` and the name of the model in `openai://HOST:PORT/v1#MODEL`.

    It is HTTP where a port other than 443 is named, else HTTPS; `openai+http://` and
    `openai+https://` say which.

    Raises:
      UsageError: it is none.
    """
    parts = _ADDRESS.fullmatch(bundle)
    if not parts:
        raise UsageError(
            f"`bundle={bundle}`: this is no server with a model; write openai://HOST:"
            "PORT/v1#MODEL, or openai+https://... for TLS on a port other than 443"
        )
    protocol, host, port, path, model = parts.groups("")
    usual = "+https" if port in ("", ":443") else "+http"
    path = path.rstrip("/") or "/v1"
    return f"{(protocol or usual)[1:]}://{host}{port}{path}", model


def is_builtin(bundle: str) -> bool:
    """Whether a bundle comes with the package, wherever that is installed."""
    return bundle.startswith(_BUILTIN)


def bundle_folder(bundle: str) -> str:
    """The folder of a bundle; for `builtin:NAME`, the one within the package.

    Raises:
      UsageError: no such bundle comes along.
    """
    if not is_builtin(bundle):
        return bundle
    name = bundle.removeprefix(_BUILTIN)
    folder = os.path.join(os.path.dirname(__file__), "builtin")
    if name not in os.listdir(folder):
        raise UsageError(
            f"{bundle}: no such bundle comes with precis; known is {BUILTIN_SELECTOR}"
        )
    return os.path.join(folder, name)
