"""What differential privacy costs: accuracy of GMM-WBT on mixtures with and without noise.

    python benchmarks/private.py                       # three sets, epsilon 1, 3, 10, five draws

Each source publishes a private labeled mixture with one component per class. "target at home"
adapts at the target's site, which fits its own mixture without noise; "all private" gets a private
mixture of the target as well. Bounds come from the meaning of the features, not from the rows, and
delta is 1e-5. Without noise, the numbers of components are the same. No target label is read
before scoring. Each of the first --targets domains serves as the target.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import mixda
from mixda import datasets

UNIT = [0.0, 1.0]
ADULT = [[0.0, 100.0], [0.0, 16.0], [0.0, 100.0], [0.0, 12.0], [0.0, 12.0]]  # age, years, hours, …
SETS = {
    "electricity": (lambda: datasets.load_published("electricity"), lambda d: [UNIT] * d),
    "digits": (lambda: datasets.load_digit_scanners(random_state=0), lambda d: [UNIT] * d),
    "adult": (lambda: datasets.load_published("adult"), lambda d: ADULT + [UNIT] * (d - 5)),
}
EPSILONS = (1.0, 3.0, 10.0)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", type=int, default=3)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--sets", default=",".join(SETS))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in arguments.sets.split(","):
        data, bounds = SETS[name][0](), SETS[name][1]
        X, y = np.asarray(data.X, dtype=float), np.asarray(data.y)
        limits = np.array(bounds(X.shape[1]))
        sizes = [int((data.domain == k).sum()) for k in range(len(data.domain_names))]
        print(f"\n{name}: domains of {min(sizes)} to {max(sizes)} rows, {X.shape[1]} features")
        for where in ("target at home", "all private"):
            cells = [None, *EPSILONS]
            texts = []
            for epsilon in cells:
                scores = [
                    score(X, y, np.asarray(data.domain), target, limits, epsilon, where, draw)
                    for target in range(min(arguments.targets, len(data.domain_names)))
                    for draw in range(arguments.draws if epsilon else 1)
                ]
                label = "no noise" if epsilon is None else f"epsilon {epsilon:g}"
                texts.append(f"{label} {100 * np.mean(scores):.1f}")
            print(f"  {where:15s}", "   ".join(texts), flush=True)


def score(X, y, domain, target, bounds, epsilon, where, draw) -> float:
    """Accuracy on one target."""
    sources = [k for k in np.unique(domain) if k != target]
    classes = np.unique(y)
    private = {"bounds": bounds, "epsilon": epsilon}

    def labeled(k: int) -> mixda.Mixture:
        rows = domain == k
        if epsilon is None:
            return mixda.fit_labeled_mixture(X[rows], y[rows], 1, classes=classes, random_state=0)
        return mixda.fit_private_mixture(X[rows], y[rows], classes=classes, **private)

    rows = domain == target
    if epsilon is None or where == "target at home":
        goal = mixda.fit_mixture(X[rows], len(classes), random_state=0)
    else:
        goal = mixda.fit_private_mixture(X[rows], None, len(classes), random_state=draw, **private)
    model = mixda.GMMWBT(random_state=0).fit_mixtures([labeled(k) for k in sources], goal)
    return model.score(X[rows], y[rows])


if __name__ == "__main__":
    main()
