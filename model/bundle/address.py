"""The address of a model behind an endpoint, which stands in place of a bundle."""

import contextlib
from typing import NamedTuple
from urllib.parse import urlsplit

from precis.model.errors import UsageError

SCHEME = "openai"


class Address(NamedTuple):
    """Where a server is, and what it calls the model.

    Attributes:
      url: up to `/v1`.
      model: as in its list of models.
    """

    url: str
    model: str


def is_endpoint(bundle: str) -> bool:
    """Whether a bundle is a server's, and no folder."""
    return bundle.startswith((f"{SCHEME}:", f"{SCHEME}+"))


def parse_address(bundle: str) -> Address:
    """The address in `openai://HOST:PORT/v1#MODEL`.

    It is HTTP where a port other than 443 is named, else HTTPS; `openai+http://` and
    `openai+https://` say which.

    Raises:
      UsageError: it is none.
    """
    parts = urlsplit(bundle)
    with contextlib.suppress(ValueError):  # of a port that is no number
        secure = {f"{SCHEME}+https": True, f"{SCHEME}+http": False}.get(
            parts.scheme, parts.port in (None, 443)
        )
        is_known = parts.scheme in (SCHEME, f"{SCHEME}+http", f"{SCHEME}+https")
        if is_known and parts.hostname and parts.fragment and not parts.query:
            protocol = "https" if secure else "http"
            path = parts.path.rstrip("/") or "/v1"
            return Address(f"{protocol}://{parts.netloc}{path}", parts.fragment)
    raise UsageError(
        f"--bundle {bundle}: an endpoint is a server and the name that it has for a "
        "model; write openai://HOST:PORT/v1#MODEL, or openai+https://... for TLS on a "
        "port other than 443"
    )
