"""Bounded samples of data of any size, and sources made from other sources."""

from dataclasses import replace

import numpy as np
import pytest

from mixda import MixdaError, chunks
from mixda.chunks import RowBlock
from mixda.chunks._sample import _hash_rows

X = np.random.default_rng(0).normal(size=(30_000, 3))
Y = np.repeat(["a", "b", "c"], [29_000, 990, 10])


def sample(source, max_rows=1000, **options):
    return chunks.sample_rows(source, max_rows, **options)[None]


def test_order_and_partitions_do_not_matter():
    order = np.random.default_rng(1).permutation(len(X))
    first = sample(chunks.from_arrays(X, Y))
    other = sample(chunks.from_arrays(X[order], Y[order], rows=777), n_jobs=1)
    np.testing.assert_array_equal(first.X, other.X)
    np.testing.assert_array_equal(first.y, other.y)
    assert first.digest == other.digest


def test_smallest_hashes_of_each_class():
    drawn = sample(chunks.from_arrays(X, Y, rows=4000))
    for name, expected in (("a", 966), ("b", 50), ("c", 10)):
        rows = X[name == Y]
        smallest = rows[np.argsort(_hash_rows(rows))[:expected]]
        np.testing.assert_array_equal(np.sort(drawn.X[drawn.y == name], 0), np.sort(smallest, 0))
    assert drawn.n_rows == 30_000
    assert drawn.is_thinned


def test_hash_is_uniform():
    for values in (X, np.arange(30_000.0)[:, None], np.float32(X)):
        shares = np.histogram(_hash_rows(values).astype(float) / 2**64, 20, (0, 1))[0] / len(X)
        assert np.abs(shares - 0.05).max() < 0.01  # eight standard deviations
    assert _hash_rows(np.array([[0.0]])) == _hash_rows(np.array([[-0.0]]))


def test_equal_rows_keep_their_share():
    few = np.where(np.arange(60_000) % 2, 7.0, np.arange(60_000) % 100)[:, None]
    drawn = sample(chunks.from_arrays(few, rows=5000))
    assert abs((drawn.X == 7.0).mean() - 0.505) < 0.08  # five standard deviations
    assert len(np.unique(drawn.X)) > 45


def test_small_data_are_complete():
    drawn = sample(chunks.from_arrays(X, Y), 30_000)
    np.testing.assert_array_equal(np.sort(drawn.X, 0), np.sort(X, 0))
    assert not drawn.is_thinned


def test_thinned_keeps_shares():
    drawn = sample(chunks.from_arrays(X, Y)).thinned(200)
    assert {name: int((drawn.y == name).sum()) for name in "abc"} == {"a": 188, "b": 50, "c": 10}


def test_domains_of_one_source():
    domain = np.where(np.arange(len(X)) < 5000, "lab", "plant")
    drawn = chunks.sample_rows(chunks.from_arrays(X, Y, domain, rows=2500), 100)
    assert {name: part.n_rows for name, part in drawn.items()} == {"lab": 5000, "plant": 25_000}
    assert drawn["lab"].partitions == (0, 1)


class _Watched:
    """A partition that counts the rows of blocks that are alive."""

    def __init__(self, seed, blocks, rows):
        self.seed, self.n_blocks, self.rows = seed, blocks, rows

    def blocks(self):
        rng = np.random.default_rng(self.seed)
        for _ in range(self.n_blocks):
            yield RowBlock(rng.normal(size=(self.rows, 4)))


def test_memory_is_bounded():
    """A million rows (32 MB) are sampled within a few times the size of the sample (0.3 MB)."""
    import tracemalloc

    partitions = tuple(_Watched(seed, 10, 5000) for seed in range(20))
    source = chunks.RowSource(partitions, 4)
    sample(replace(source, partitions=partitions[:1]))  # imports
    tracemalloc.start()
    try:
        drawn = sample(source, 10_000, n_jobs=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert drawn.n_rows == 1_000_000
    assert len(drawn.X) == 10_000
    assert peak < 12e6


def test_select_domains_does_not_read_target_labels(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y,site\n1,ok,lab\n2,bad,lab\n3,,plant\n4,,plant\n")
    source = chunks.from_files(path, label="y", domain="site")
    target = chunks.select_domains(source, ["plant"], labeled=False)
    assert sample(target).X.ravel().tolist() in ([3.0, 4.0], [4.0, 3.0])
    lab = chunks.select_domains(source, ["lab"], labeled=True)
    assert sorted(sample(lab).y) == ["bad", "ok"]


def test_domains_rejects():
    rows = chunks.from_arrays(X, Y)
    for given, word in (
        ({0: rows, -1: X}, "RowSource"),
        ({"lab": rows}, "'lab'"),
        ({0: chunks.from_arrays(X)}, "classes"),
        ({0: rows, -1: chunks.from_arrays(X[:, :2])}, "features"),
    ):
        with pytest.raises(MixdaError, match=word):
            chunks.Domains(given)
