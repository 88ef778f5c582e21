"""Two tables have one fingerprint when their rows, order and columns are equal, and else the difference is named."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from factories import make_episodes
from test_publish import make_set

from pairgen.errors import PairgenError
from pipelines import fingerprint, pairset
from pipelines.manifest import content_of, content_of_rows


@pytest.fixture
def pairs(tmp_path):
    return make_set(tmp_path / "pairs", make_episodes(tasks=3))


def test_the_rows_by_id_have_the_hash_of_the_pairs(pairs, monkeypatch):
    monkeypatch.setattr(fingerprint, "BATCH", 7)
    assert content_of_rows(fingerprint.rows_by_id(pairs)) == content_of(pairset.read_pairs(pairs))
    assert content_of(pairset.read_pairs(pairs)) == pairset.read_manifest(pairs).content


def test_each_kind_of_difference_is_named(pairs):
    here = fingerprint.of_folder(pairs)
    assert set(here) == set(fingerprint.TABLES) and fingerprint.differences(here, here) == []
    path = pairs / "full/train.parquet"
    table = pq.read_table(path)
    changes = {
        "has other contents": table.take(pa.array(range(len(table) - 1, -1, -1))),
        f"has {len(table) - 1} rows, not {len(table)}": table.slice(1),
        "has other columns (detail: string)": table.drop_columns(["detail"]),
    }
    for says, changed in changes.items():
        pq.write_table(changed, path)
        (found,) = fingerprint.differences(here, fingerprint.of_folder(pairs))
        assert found.startswith("full/train.parquet ") and says in found
    path.unlink()
    assert fingerprint.differences(here, fingerprint.of_folder(pairs)) == ["full/train.parquet is missing"]
    assert fingerprint.differences(fingerprint.of_folder(pairs), here) == ["full/train.parquet is one too many"]


def test_a_file_that_is_no_table_is_told(pairs):
    (pairs / "full/train.parquet").write_bytes(b"no")
    with pytest.raises(PairgenError, match="make the set again"):
        fingerprint.of_folder(pairs)
    with pytest.raises(PairgenError, match="make the set again"):
        list(fingerprint.rows_by_id(pairs))
