"""Tests of files of records in numbered groups."""

import numpy as np
import pytest

from precis.model.errors import DataError
from precis.pipelines.prepare.keyed_arrays import read_group, write_groups

NUMBERS = np.dtype([("value", "<u8")])
GROUPS = {
    0: np.array([(1,), (2,)], NUMBERS),
    3: np.array([], NUMBERS),
    12: np.array([(2**63,)], NUMBERS),
}


def test_groups_come_back_by_their_numbers(tmp_path):
    path = str(tmp_path / "a" / "keys")
    write_groups(path, GROUPS)
    assert read_group(path, 0, NUMBERS).tolist() == [(1,), (2,)]
    assert read_group(path, 12, NUMBERS).tolist() == [(2**63,)]
    for absent in (1, 2, 3, 13):
        assert read_group(path, absent, NUMBERS).tolist() == []
    write_groups(path, {})
    assert len(read_group(path, 0, NUMBERS)) == 0


def test_damage_in_any_byte_of_a_file_of_groups_is_noticed(tmp_path):
    path = tmp_path / "keys"
    write_groups(str(path), GROUPS)
    whole = path.read_bytes()
    message = f"^{path} is damaged; remove it and run the same command again"
    for position in range(len(whole)):
        # 16 bytes of group 0, 8 of group 12, and what belongs to both.
        is_hit = {0: position not in range(16, 24), 12: position >= 16}
        for bit in (0x01, 0x80):
            damaged = bytearray(whole)
            damaged[position] ^= bit
            path.write_bytes(damaged)
            for number in (number for number in is_hit if is_hit[number]):
                with pytest.raises(DataError, match=message):
                    read_group(str(path), number, NUMBERS)
    for damaged in [whole[:end] for end in range(len(whole))] + [whole + b"\0"]:
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=message):
            read_group(str(path), 12, NUMBERS)
