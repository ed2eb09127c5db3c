"""Addresses in place of the folder of a bundle: `openai://...` for a model behind an
endpoint, `openai-batch://...` if it is asked in batches, and `builtin:...` for a bundle
in the package.
"""

import os
import re

from precis.model.errors import UsageError

SCHEME = "openai"
_BATCH = f"{SCHEME}-batch"
_BUILTIN = "builtin:"
BUILTIN_SELECTOR = f"{_BUILTIN}news-en"
_ADDRESS = re.compile(
    rf"{SCHEME}(?:-batch)?(\+https?)?://([^\s/?#@:]+|\[[^\s/?#@]+\])(:\d+)?(/[^\s?#]*)?#(.+)"
)


def is_endpoint(bundle: str) -> bool:
    """Whether a bundle is the address of an endpoint, and not a folder."""
    return bundle.startswith((f"{SCHEME}:", f"{SCHEME}+")) or is_batch(bundle)


def is_batch(bundle: str) -> bool:
    """Whether a bundle is the address of an endpoint that is asked in batches."""
    return bundle.startswith((f"{_BATCH}:", f"{_BATCH}+"))


def parse_address(bundle: str) -> tuple[str, str]:
    """Returns the URL, up to `/v1`, and the model of `openai://HOST:PORT/v1#MODEL`, or
    of the same with `openai-batch`.

    The protocol is HTTP if there is a port other than 443, else HTTPS. `openai+http://`
    and `openai+https://` set it.

    Raises:
      UsageError: `bundle` is not such an address.
    """
    parts = _ADDRESS.fullmatch(bundle)
    if not parts:
        raise UsageError(
            f"`bundle={bundle}`: not the address of a model on a server; write "
            "openai://HOST:PORT/v1#MODEL, or openai+https://... for TLS on a port "
            "other than 443; openai-batch://... asks in batches"
        )
    protocol, host, port, path, model = parts.groups("")
    usual = "+https" if port in ("", ":443") else "+http"
    path = path.rstrip("/") or "/v1"
    return f"{(protocol or usual)[1:]}://{host}{port}{path}", model


def is_builtin(bundle: str) -> bool:
    """Whether a bundle is in the package."""
    return bundle.startswith(_BUILTIN)


def bundle_folder(bundle: str) -> str:
    """The folder of a bundle; for `builtin:NAME`, a folder in the package.

    Raises:
      UsageError: the package has no such bundle.
    """
    if not is_builtin(bundle):
        return bundle
    name = bundle.removeprefix(_BUILTIN)
    folder = os.path.join(os.path.dirname(__file__), "builtin")
    if name not in os.listdir(folder):
        raise UsageError(
            f"{bundle}: precis comes with no such bundle; use {BUILTIN_SELECTOR}"
        )
    return os.path.join(folder, name)
