"""Cells missing completely at random: integrated out or filled by a mixture, against simpler ways.

Cells of all domains are emptied at random. Each of the first four domains in turn is the target. A
labeled mixture of all sources (two components per class, MAP) and a logistic regression on all
sources are trained and score the target, with the gaps treated in three ways:

* mixture: the labeled mixture integrates gaps out; the logistic regression sees conditional means
  under a mixture of all rows, as every other classifier of mixda does.
* mean: gaps are filled with the mean of the column over the sources.
* drop: incomplete rows of the sources are left out, and gaps of the target are filled with means.

All rows of the target count. The number of components and floor of the imputing mixture were chosen
on heart disease and gas drift, which are not among these sets.

    python benchmarks/missing_values.py                  # the table of the documentation
    python benchmarks/missing_values.py --sets wisdm --seeds 1
"""

import argparse
import warnings

import numpy as np

import mixda
from mixda.datasets import load_published

SETS = ("hydraulic", "wisdm", "electricity", "cstr")
SHARES = (0.0, 0.1, 0.3)
MAX_ROWS = 500  # per domain
N_TARGETS = 4


def domains_of(name, rng):
    data = load_published(name)
    domains = []
    for domain in data.domain_names:
        X, y = data.samples_of(domain)
        rows = rng.permutation(len(X))[:MAX_ROWS]
        domains.append((X[rows], y[rows]))
    return domains


def with_gaps(X, share, rng):
    gaps = rng.random(X.shape) < share
    gaps[np.arange(len(X)), rng.integers(0, X.shape[1], len(X))] = False  # no empty row
    return np.where(gaps, np.nan, X)


def fill(X, means):
    return np.where(np.isnan(X), means, X)


def by_mixture(X, y, target):
    mean, std = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    std = np.where(std > 0, std, 1.0)
    mixture = mixda.fit_labeled_mixture((X - mean) / std, y, 2, min_std=0.1, random_state=0)
    return mixture.predict((target - mean) / std)


def by_logistic(X, y, target):
    ids = np.repeat([0, -1], [len(X), len(target)])
    labels = np.concatenate([y, np.repeat(y[:1], len(target))])  # target rows are not read
    model = mixda.SourceOnly().fit(np.vstack([X, target]), labels, sample_domain=ids)
    return model.predict(target)


CLASSIFIERS = {"mixture, MAP": by_mixture, "logistic": by_logistic}


def accuracies(X, y, target, truth, classify):
    """Return the accuracy of each treatment of the gaps, NaN where a class has no row left."""
    complete = ~np.isnan(X).any(axis=1)
    means = np.nanmean(X, axis=0)
    scores = [
        np.mean(classify(X, y, target) == truth),
        np.mean(classify(fill(X, means), y, fill(target, means)) == truth),
        np.nan,
    ]
    if len(np.unique(y[complete])) == len(np.unique(y)):
        left = X[complete]
        scores[2] = np.mean(classify(left, y[complete], fill(target, left.mean(axis=0))) == truth)
    return scores


def run(name, share, seeds):
    scores = {classifier: [] for classifier in CLASSIFIERS}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        domains = [(with_gaps(X, share, rng), y) for X, y in domains_of(name, rng)]
        for t, (target, truth) in enumerate(domains[:N_TARGETS]):
            others = [domain for k, domain in enumerate(domains) if k != t]
            X, y = (np.concatenate(part) for part in zip(*others, strict=True))
            for classifier, classify in CLASSIFIERS.items():
                scores[classifier].append(accuracies(X, y, target, truth, classify))
    return {classifier: 100 * np.mean(rows, axis=0) for classifier, rows in scores.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'set':14}{'missing':>8}  {'classifier':14}{'mixture':>9}{'mean':>9}{'drop':>9}")
    for name in arguments.sets:
        for share in SHARES:
            for classifier, row in run(name, share, arguments.seeds).items():
                cells = "".join("        –" if np.isnan(v) else f"{v:9.1f}" for v in row)
                print(f"{name:14}{share:8.0%}  {classifier:14}{cells}", flush=True)


if __name__ == "__main__":
    main()
