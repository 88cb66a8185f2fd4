"""Measure ``mixda predict`` on a Parquet file larger than memory, compared with scikit-learn.

The model classifies with a labeled mixture. In scikit-learn, the same classifier is a
``GaussianMixture("diag")`` with the same parameters, whose responsibilities are multiplied by the
labels. Both read the same batches with pyarrow and write labels, confidences and probabilities to
Parquet. "far" adds the densities under the mixtures of all domains, which mixda writes as well.

    python benchmarks/predict_stream.py            # 10 million rows × 16 features, 1.3 GB on disk
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import mixda
from mixda.tables import write_table

CLASSES, PER_CLASS, BATCH = 5, 3, 65_536


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--folder", type=Path, help="folder for the files; default: temporary")
    parser.add_argument("--make", nargs=2, metavar=("MODEL", "DATA"), help="internal")
    parser.add_argument("--sklearn", nargs=3, metavar=("MODEL", "DATA", "FAR"), help="internal")
    options = parser.parse_args()
    if options.sklearn:
        predict_with_sklearn(*options.sklearn)
        return
    if options.make:
        make_files(*map(Path, options.make), options.rows, options.features)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        compare(Path(name), options.rows, options.features)


def compare(folder: Path, n_rows: int, d: int) -> None:
    model, data = folder / "m.mixda", folder / "data.parquet"
    me = [sys.executable, __file__]
    # in another process, because the peak of a child starts at the size of its parent
    run([*me, "--make", str(model), str(data), "--rows", str(n_rows), "--features", str(d)])
    out = folder / "o.parquet"
    size = data.stat().st_size / 1e6
    print(f"{n_rows:,} rows x {d} features, {size:,.0f} MB of parquet; batches of {BATCH:,}")
    print(f"{'':<34}{'rows/s':>12}{'seconds':>9}{'peak MB':>9}")
    here = [*me, "--sklearn", str(model), str(data)]
    commands = {
        "mixda predict": [
            *(sys.executable, "-m", "mixda", "predict", str(model), str(data), "-o", str(out))
        ],
        "scikit-learn, the same with far": [*here, "1"],
        "scikit-learn, without far": [*here, "0"],
    }
    for words, command in commands.items():
        seconds, peak = run(command)
        print(f"{words:<34}{n_rows / seconds:>12,.0f}{seconds:>9.1f}{peak:>9.0f}", flush=True)


def make_files(model: Path, data: Path, n_rows: int, d: int) -> None:
    """Write three labeled sources and a target, each drawn from a random mixture."""
    rng = np.random.default_rng(0)
    means = rng.normal(scale=3.0, size=(CLASSES * PER_CLASS, d))
    labels = np.repeat(np.eye(CLASSES), PER_CLASS, axis=0)
    weights = np.full(len(means), 1.0 / len(means))
    names = [f"x{k}" for k in range(d)]
    domains = [
        mixda.Mixture(weights, means + shift, np.ones_like(means), labels, feature_names=names)
        for shift in (0.0, 0.3, -0.3, 0.5)
    ]
    estimator = mixda.GMMWBT(random_state=0).fit_mixtures(domains[:-1], domains[-1])
    estimator.to_model().save(model)

    def batches():
        for start in range(0, n_rows, 10 * BATCH):
            X, _ = domains[-1].sample(min(10 * BATCH, n_rows - start), rng)
            yield {name: X[:, k] for k, name in enumerate(names)}

    write_table(data, batches())


def run(command: list[str]) -> tuple[float, float]:
    """Return the seconds and the peak resident memory in MB of a new process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return time.perf_counter() - start, usage.ru_maxrss / 1e3


def predict_with_sklearn(model_path: str, data: str, far: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    model = mixda.AdaptedModel.load(model_path)
    mixture = model.labeled_target
    classifier = mixture.to_sklearn()
    densities = [domain.mixture.to_sklearn() for domain in (*model.sources, model.target)]
    writer = None
    file = pq.ParquetFile(data, pre_buffer=False)  # as in mixda, to save memory
    for batch in file.iter_batches(BATCH, columns=list(model.feature_names)):
        X = np.column_stack([column.to_numpy() for column in batch.columns])
        proba = classifier.predict_proba(X) @ mixture.labels
        columns = {
            "label": pa.array(model.classes[proba.argmax(axis=1)]),
            "confidence": pa.array(proba.max(axis=1)),
            **{f"p_{c}": pa.array(proba[:, k]) for k, c in enumerate(model.classes)},
        }
        if far == "1":
            largest = np.max([density.score_samples(X) for density in densities], axis=0)
            columns["far"] = pa.array(largest < model.novelty_threshold)
        record = pa.RecordBatch.from_pydict(columns)
        if writer is None:
            writer = pq.ParquetWriter(Path(data).with_name("sklearn.parquet"), record.schema)
        writer.write_batch(record)
    writer.close()


if __name__ == "__main__":
    main()
