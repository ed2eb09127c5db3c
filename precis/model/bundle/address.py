"""The address of a model behind an endpoint, which stands in place of a bundle."""

import re

from precis.model.errors import UsageError

SCHEME = "openai"
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
