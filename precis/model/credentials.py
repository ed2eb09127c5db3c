"""Keeps credentials out of paths, results, messages and logs.

gs://user:secret@bucket/x              a user and a password
https://host/x?X-Goog-Signature=ab12   a signature
"""

import logging
import re

from precis.model.errors import UsageError

_HIDDEN = "***"
# scheme://user:password@host; in URIs of PostgreSQL a name alone is no secret.
_USER = re.compile(r"(?<=://)(?!(?<=postgresql://)[^:/\s@'\"]*@)[^/\s'\"]*@")
# URL parameters that hold a signature or a token.
_NAMES = (
    *("X-Goog-Signature", "X-Goog-Credential", "X-Amz-Signature", "X-Amz-Credential"),
    *("X-Amz-Security-Token", "AWSAccessKeyId", "GoogleAccessId", "Signature"),
    *("access_token", "upload_id", "refresh_token", "client_secret", "sig", "token"),
    *("password", "sslpassword"),
    *("aws_access_key_id", "aws_secret_access_key", "aws_session_token"),
)
_PARAMETER = re.compile(rf"(?i)([?&;](?:{'|'.join(_NAMES)})=)[^&\s'\"]+")
_BEARER = re.compile(r"(?i)\b(bearer|aws4-hmac-sha256)\s+[^'\"\n]+")


def redact(text: str) -> str:
    """The text with the credentials in its URLs and headers replaced by `***`."""
    text = _USER.sub(f"{_HIDDEN}@", text)
    text = _PARAMETER.sub(rf"\1{_HIDDEN}", text)
    return _BEARER.sub(rf"\1 {_HIDDEN}", text)


def refuse_credentials(path: str, *, what: str = "") -> None:
    """Checks that a path holds no credentials, as results record the paths of inputs.

    Args:
      path: the path, or another text with paths.
      what: the flag that it comes from, for the message.

    Raises:
      UsageError: it holds credentials.
    """
    shown = redact(path)
    if "://" in path and shown != path:
        way_out = "docs/ENGINES.md says how to give them"
        if path.startswith("postgresql://"):
            way_out = "give the password as PGPASSWORD or in ~/.pgpass"
        raise UsageError(
            f"{what}{shown}: remove the credentials, as the path is recorded in the "
            f"result; {way_out}"
        )


class RedactingFormatter(logging.Formatter):
    """Formats log records and tracebacks without credentials."""

    def format(self, record: logging.LogRecord) -> str:
        """The text of a record."""
        return redact(super().format(record))
