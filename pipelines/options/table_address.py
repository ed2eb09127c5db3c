"""Addresses of tables: what --table means, and how to read a table.

    iceberg://CATALOG/NAMESPACE.TABLE         a catalogue that pyiceberg's configuration
                                              describes: .pyiceberg.yaml, or variables
                                              such as PYICEBERG_CATALOG__CATALOG__URI
    iceberg+sqlite://FOLDER/NAMESPACE.TABLE   a folder with its own catalogue,
                                              FOLDER/catalog.db
    delta://FOLDER                            a Delta table

A local FOLDER that begins with a slash is absolute: iceberg+sqlite:///data/news.daily
is the table news.daily in /data.
"""

import json
import os
from typing import NamedTuple

from precis.model.errors import UsageError

ICEBERG = "iceberg"
ICEBERG_SQLITE = "iceberg+sqlite"
DELTA = "delta"
CATALOG_FILE = "catalog.db"
# The name under which the tables stand in the catalogue of a folder.
LOCAL_CATALOG = "precis"


class TableAddress(NamedTuple):
    """Where a table is.

    Attributes:
      scheme: ICEBERG, ICEBERG_SQLITE or DELTA.
      place: the name of the catalogue, or the folder.
      identifier: namespaces and name with dots between them; empty for Delta.
    """

    scheme: str
    place: str
    identifier: str


def read_address(text: str) -> TableAddress:
    """Parses an address.

    Raises:
      UsageError: it is none.
    """
    scheme, sign, rest = text.partition("://")
    if not sign or scheme not in (ICEBERG, ICEBERG_SQLITE, DELTA):
        raise UsageError(
            f"--table {text!r} names no table; it is iceberg://CATALOG/NAMESPACE.TABLE,"
            " iceberg+sqlite://FOLDER/NAMESPACE.TABLE or delta://FOLDER"
        )
    if scheme == DELTA:
        if not rest:
            raise UsageError(f"--table {text!r} has no folder, as in delta://FOLDER")
        return TableAddress(scheme, rest, "")
    place, _, identifier = rest.rpartition("/")
    names = identifier.split(".")
    if not place or len(names) < 2 or not all(names):
        kind = "FOLDER" if scheme == ICEBERG_SQLITE else "CATALOG"
        raise UsageError(
            f"--table {text!r} is incomplete; it is {scheme}://{kind}/NAMESPACE.TABLE"
        )
    return TableAddress(scheme, place, identifier)


def catalog_settings(folder: str) -> dict[str, str]:
    """What pyiceberg must know of the catalogue in a folder."""
    folder = os.path.abspath(folder)
    return {
        "type": "sql",
        "uri": f"sqlite:///{os.path.join(folder, CATALOG_FILE)}",
        "warehouse": f"file://{folder}",
    }


def reading_command(text: str) -> str:
    """Python that prints rows of a table."""
    address = read_address(text)
    columns = '["document_id", "summary"]'
    if address.scheme == DELTA:
        table = f"deltalake.DeltaTable({json.dumps(address.place)})"
        return (
            f"import deltalake; print({table}.to_pyarrow_dataset().head(3, {columns})"
            ".to_pylist())"
        )
    name, settings = address.place, ""
    if address.scheme == ICEBERG_SQLITE:
        name = LOCAL_CATALOG
        settings = f", **{json.dumps(catalog_settings(address.place))}"
    return (
        "from pyiceberg.catalog import load_catalog; "
        f"catalog = load_catalog({json.dumps(name)}{settings}); "
        f"table = catalog.load_table({json.dumps(address.identifier)}); "
        f"print(table.scan(selected_fields={columns}, limit=3).to_arrow().to_pylist())"
    )
