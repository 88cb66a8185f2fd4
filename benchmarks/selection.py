"""AutoMSDA against what its user would pick instead: each domain of each set as the target.

    python benchmarks/selection.py --out out/selection --jobs 2        # all sets, one seed
    python benchmarks/selection.py --out out/selection --sets gas,surf --seeds 5

No target label is read before scoring. Every method gets the same rows (at most --rows per domain,
drawn with the seed) and the same features, and is scored on the same rows of the target: those it
got and others of the same domain, at most SCORED in all. Where the same objects occur in every
domain (music, sugarcane), one half of the objects teaches and the other half is the target.

Each cell (set, target, seed) is one JSON file, written when it is done, and AutoMSDA keeps its
trials in a folder beside it, so an interrupted run can be resumed. Delete the output folder after
changes of the code.

DEVELOPMENT and CONFIRMATION were named before the first experiment with the committee. Constants of
`mixda.selection` were chosen on DEVELOPMENT. Results of the previous version on CONFIRMATION were
known when this version was made; six of these sets (marked *) were also seen once by the first
prototype.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.svm import SVC

import mixda
from mixda import datasets
from mixda._core.atomic import write_atomically
from mixda.estimators import standardization
from mixda.rules import smooth_logs
from mixda.selection._estimate import LeftOut
from mixda.selection._pool import SMOOTHING, combine, fit_weights
from mixda.selection._trials import TARGET

DEVELOPMENT = {
    "scanners": lambda: datasets.load_digit_scanners(random_state=0),
    "cwru": datasets.load_cwru,
    "tep": lambda: datasets.load_tep("moments"),
    "surf": lambda: datasets.load_published("office_caltech_surf"),
    "cstr": lambda: datasets.load_published("cstr"),
    "hydraulic": lambda: datasets.load_published("hydraulic"),
    "electricity": lambda: datasets.load_published("electricity"),
    "heart": lambda: datasets.load_published("heart_disease"),
    "youtube": lambda: datasets.load_published("youtube_spam"),
    "music-speech": lambda: datasets.load_published("music_speech"),
    "citation": lambda: datasets.load_published("citation"),
}
CONFIRMATION = {
    "cwru-nine*": lambda: datasets.load_cwru(loads=(1, 2, 3)),
    "efficientnet": lambda: datasets.load_published("office_caltech_efficientnet"),
    "inception": lambda: datasets.load_published("office_caltech_inception"),
    "gas*": lambda: datasets.load_published("gas_drift"),
    "digits4": lambda: datasets.load_published("digits4"),
    "office31": lambda: datasets.load_published("office31_efficientnet"),
    "wisdm*": lambda: datasets.load_published("wisdm"),
    "adult*": lambda: datasets.load_published("adult"),
    "defects*": lambda: datasets.load_published("defects"),
    "music-genre": lambda: datasets.load_published("music_genre"),
    "sugarcane*": lambda: datasets.load_published("sugarcane"),
}
GROUPS = {"development": DEVELOPMENT, "confirmation": CONFIRMATION}
SETS = {**DEVELOPMENT, **CONFIRMATION}
SCORED = 1500  # rows of a target, at most, that accuracies are measured on
GIVEN, FURTHER = -1, -2  # ids of target rows that methods get and that they are only scored on
N_LABELS = (0, 5, 10, 20, 50)
COMMON, OWN = "common scale", "own scale"
OURS = ("AutoMSDA", "GMMWBT", "GMMDaDiL")


def rivals(n_classes: int, seed: int) -> dict[str, tuple[str, object]]:
    """What a practitioner would pick: a classifier and a scaling."""
    forest = RandomForestClassifier(200, random_state=seed)
    linear = LogisticRegression(max_iter=500)
    kinds = {
        "logistic, common": (COMMON, linear),
        "logistic, own": (OWN, linear),
        "forest, common": (COMMON, forest),
        "forest, own": (OWN, forest),
        "SVM, own": (OWN, SVC()),
        "LDA, own": (OWN, LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")),
    }
    if n_classes <= 5:  # slow beyond
        kinds["boosted, own"] = (OWN, HistGradientBoostingClassifier(random_state=seed))
    return kinds


class Judged(mixda.AutoMSDA):
    """AutoMSDA that keeps what its ablations need, without the mixtures that a report shows."""

    fitted = None  # members that were fitted to the same rows before, if there are any

    def _fit_members(self, members, problem):
        self.problem = problem
        if self.fitted is None:
            self.fitted = super()._fit_members(members, problem)
        return self.fitted

    def _fit_display(self, sources, target):
        pass

    def _decide(self, members, folds, told, ranges):
        self.evidence = (members, folds, told.logs)
        self.verdict = super()._decide(members, folds, told, ranges)
        return self.verdict

    def answers(self, X: np.ndarray) -> np.ndarray:
        """Log-probabilities of all members, in the order of `known`."""
        sources = range(len(self.problem.codes))
        silent = np.full((len(X), len(self.classes_)), 1.0 / len(self.classes_))
        seen, logs = {}, []
        for member, fitted in zip(self.evidence[0], self.fitted, strict=True):
            view = (member.view, member.all_features)
            if view not in seen:
                seen[view] = self.problem.rule(member, TARGET, sources)(X)
            proba = silent if fitted is None else fitted.rule()(seen[view])
            logs.append(smooth_logs(proba, SMOOTHING))
        return np.array(logs)

    @property
    def known(self) -> np.ndarray:
        """The classes in the order in which the members know them."""
        return self.classes_[self._class_order]


def load(name: str, target: int, rows: int, seed: int, scored: int = 0) -> tuple[np.ndarray, ...]:
    """Rows of all domains, classes, and ids: sources from 0, the target GIVEN or FURTHER."""
    data = SETS[name]()
    rng = np.random.default_rng([seed, 17])
    half = None
    if data.block is not None and name.startswith(("music", "sugarcane")):
        blocks = np.unique(data.block)
        half = np.isin(data.block, rng.choice(blocks, len(blocks) // 2, replace=False))
    kept = []
    for k in range(len(data.domain_names)):
        own = data.domain == k
        if half is not None:
            own &= half if k == target else ~half
        index = np.flatnonzero(own)
        kept.append(rng.choice(index, min(rows, len(index)), replace=False))
        if k == target:
            further = np.setdiff1d(index, kept[-1])
    n_further = int(np.clip(scored - len(kept[target]), 0, len(further)))
    further = rng.choice(further, n_further, replace=False)
    index = np.sort(np.concatenate([*kept, further]))
    ids = np.where(data.domain[index] == target, GIVEN, data.domain[index])
    ids[np.isin(index, further)] = FURTHER
    return np.asarray(data.X[index], dtype=float), np.asarray(data.y)[index], ids


def skewed(y: np.ndarray, classes: np.ndarray, share: float, rng: np.random.Generator):
    """Rows of two classes in the given proportion."""
    first, second = (np.flatnonzero(y == c) for c in classes)
    n = int(min(len(first) / share, len(second) / (1.0 - share)))
    n_first = max(1, round(n * share))
    rows = [rng.choice(first, n_first, False), rng.choice(second, max(1, n - n_first), False)]
    return np.sort(np.concatenate(rows))


def run_cell(path: Path, name: str, target: int, seed: int, rows: int, skew: bool) -> None:
    warnings.simplefilter("ignore")
    X, y, ids = load(name, target, rows, seed, SCORED)
    given, scored = np.flatnonzero(ids == GIVEN), np.flatnonzero(ids < 0)
    cell = {"set": name, "target": target, "seed": seed}
    folder = path.with_suffix(".trials")
    largest = two_largest(y[given])
    to_score = variants(y[scored], largest, seed)
    for label, keep in variants(y[given], largest, seed).items():
        full = label == "natural"
        if not (full or skew):
            continue
        taught = np.concatenate([np.flatnonzero(ids >= 0), given[keep]])
        rows_ = scored[to_score[label]]
        cell[label] = judge(
            X[taught], y[taught], ids[taught], X[rows_], y[rows_], seed, folder, full
        )
    if target == 0 and skew:
        cell["natural"]["labels"] = with_labels(X, y, ids, seed, folder)
    write_atomically(path, json.dumps(cell).encode())


def variants(y: np.ndarray, largest: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Rows of a target as it is, and of its two largest classes in other proportions."""
    rng = np.random.default_rng([seed, 3])
    return {
        "natural": np.arange(len(y)),
        "90:10": skewed(y, largest, 0.9, rng),
        "50:50": skewed(y, largest, 0.5, rng),
    }


def two_largest(y: np.ndarray) -> np.ndarray:
    classes, counts = np.unique(y, return_counts=True)
    return classes[np.argsort(-counts, kind="stable")[:2]]


def judge(X, y, ids, X_scored, truth, seed, folder, full) -> dict:
    source, goal = ids >= 0, ids < 0
    scores, balanced = {}, {}

    def note(name: str, predicted: np.ndarray) -> None:
        scores[name] = float(np.mean(predicted == truth))
        balanced[name] = float(balanced_accuracy_score(truth, predicted))

    common = standardization(X[source])
    taught = {COMMON: common(X), OWN: by_domain(X, ids)}
    asked = {COMMON: common(X_scored), OWN: standardization(X[goal])(X_scored)}
    for name, (view, model) in rivals(len(np.unique(y[source])), seed).items():
        if full or name == "logistic, common":
            fitted = model.fit(taught[view][source], y[source])
            note(name, fitted.predict(asked[view]))
    if full:
        for kind in (mixda.GMMWBT, mixda.GMMDaDiL):
            note(kind.__name__, kind(random_state=seed).fit(X, y, ids).predict(X_scored))
    auto = Judged(random_state=seed, checkpoint=folder).fit(X, y, sample_domain=ids)
    proba = auto.predict_proba(X_scored)
    note("AutoMSDA", auto.classes_[proba.argmax(axis=1)])
    if not full:
        note("AutoMSDA, shares given", informed(auto, X, y, ids).predict(X_scored))
    trust = auto.trust_
    result = {
        "accuracy": scores,
        "balanced": balanced,
        "choice": auto.choice_,
        "trust": [trust.low, trust.accuracy, trust.high],
        "confidence": float(proba.max(axis=1).mean()),
        "n_target": int(goal.sum()),
        "n_scored": len(truth),
    }
    if full:
        result |= ablations(auto, X_scored, truth)
    return result


def by_domain(X: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Standardize each domain by itself."""
    scaled = np.empty_like(X)
    for k in np.unique(ids):
        scaled[ids == k] = standardization(X[ids == k])(X[ids == k])
    return scaled


def informed(auto: Judged, X, y, ids) -> Judged:
    """The same AutoMSDA, told the class proportions of the target."""
    classes, counts = np.unique(y[ids < 0], return_counts=True)
    shares = dict.fromkeys(np.unique(y[ids >= 0]).tolist(), 0.0)
    shares |= dict(zip(classes.tolist(), counts / counts.sum(), strict=True))
    told = clone(auto).set_params(target_shares=shares)
    told.fitted = auto.fitted
    return told.fit(X, y, sample_domain=ids)


def ablations(auto, X, truth) -> dict:
    """Pools with and without some members, from the same answers."""
    members, folds = auto.evidence[0], list(auto.evidence[1].values())
    logs = auto.answers(X)
    y = np.argsort(auto._class_order)[np.searchsorted(auto.classes_, truth)]

    def accuracy(weights, chosen):
        return float(np.mean(combine(weights, logs[chosen]).argmax(axis=1) == y))

    everyone = list(range(len(members)))
    ordinary = [k for k in everyone if not members[k].adapts]
    transport = [k for k in everyone if members[k].adapts]
    alone = {m.label: float(np.mean(logs[k].argmax(axis=1) == y)) for k, m in enumerate(members)}
    result = {"members": alone, "ordinary": [members[k].label for k in ordinary]}
    if not folds:
        return result
    left_out = np.mean([(f.logs.argmax(axis=2) == f.truth).mean(axis=1) for f in folds], axis=0)
    pick = max(ordinary, key=lambda k: left_out[k])
    result["ablations"] = {
        "pick": alone[members[pick].label],
        "equal weights": accuracy(np.ones(len(members)), everyone),
        "no shrinkage": accuracy(fit_weights(folds, strength=1e-3), everyone),
        "ordinary only": accuracy(fit_weights([f.take(ordinary) for f in folds]), ordinary),
        "transport only": accuracy(fit_weights([f.take(transport) for f in folds]), transport),
        "pool": accuracy(fit_weights(folds), everyone),
    }
    result["estimates"] = estimates(auto, folds)
    return result


def estimates(auto, folds) -> dict:
    """Estimators of the accuracy from the literature, on the same calibrated committee."""
    logs = auto.evidence[2]
    left: LeftOut = auto.verdict.left_out
    proba = auto.predict_proba(auto.problem.views.domains[TARGET])
    held = [np.exp(part) for part in left.logs]
    accuracy, confidence = left.accuracy, float(proba.max(axis=1).mean())
    usual = np.mean(
        [np.bincount(t, r, proba.shape[1]) for t, r in zip(left.truth, left.rows, strict=True)], 0
    )
    threshold = np.quantile(np.concatenate([p.max(axis=1) for p in held]), 1.0 - accuracy)

    def agreement(answers, members):
        return float(np.mean(members.argmax(axis=2) == answers.argmax(axis=1)))

    pooled = auto.verdict.weights
    usual_agreement = np.mean([agreement(combine(pooled, f.logs), f.logs) for f in folds])
    return {
        "held-out accuracy": accuracy,
        "average confidence": confidence,
        "difference of confidences": accuracy
        - float(np.mean([p.max(axis=1).mean() for p in held]))
        + confidence,
        "ATC": float((proba.max(axis=1) > threshold).mean()),
        "COT": 1.0 - optimal_transport_to_labels(proba[:, auto._class_order], usual),
        "agreement (GDE)": accuracy - usual_agreement + agreement(combine(pooled, logs), logs),
    }


def optimal_transport_to_labels(proba: np.ndarray, shares: np.ndarray) -> float:
    """Cost of moving predictions to one-hot labels of the sources' shares (COT)."""
    import ot

    cost = 0.5 * ot.dist(proba, np.eye(len(shares)), metric="cityblock")
    rows = np.full(len(proba), 1.0 / len(proba))
    return float(ot.emd2(rows, shares / shares.sum(), cost))


def with_labels(X, y, ids, seed, folder) -> dict:
    """By number of labeled target rows, on the other rows: accuracy, error of the estimate, rival.

    The rival is the reference of the fit, the ordinary classifier that was best on held-out
    sources, taught the same labeled rows.
    """
    given = np.flatnonzero(ids == GIVEN)
    order = np.random.default_rng([seed, 5]).permutation(given)
    most = max(N_LABELS) if len(given) > 2 * max(N_LABELS) else len(given) // 2
    rest = np.setdiff1d(np.flatnonzero(ids < 0), order[:most])
    fitted = ids != FURTHER
    found = {}
    for n in N_LABELS:
        if n > most:
            continue
        labels = y.astype(float)
        labels[np.setdiff1d(given, order[:n])] = np.nan
        auto = Judged(random_state=seed, checkpoint=folder, target_labels="use")
        auto.fit(X[fitted], labels[fitted], sample_domain=ids[fitted])
        accuracy = float(np.mean(auto.predict(X[rest]) == y[rest]))
        trust = auto.trust_.accuracy
        error = None if trust is None else abs(trust - accuracy)
        found[n] = [accuracy, error, float(np.mean(taught_rival(auto, X[rest]) == y[rest]))]
    return found


def taught_rival(auto, X) -> np.ndarray:
    """Answers of the ordinary classifier that was best on held-out sources."""
    members, scores = auto.evidence[0], auto.verdict.scores
    ordinary = [k for k, member in enumerate(members) if not member.adapts]
    best = max(ordinary, key=lambda k: scores[k])
    return auto.known[auto.answers(X)[best].argmax(axis=1)]


def mean(values) -> float:
    values = [v for v in values if v is not None]
    return 100.0 * float(np.mean(values)) if values else float("nan")


def table(cells: list[dict]) -> str:
    """Accuracies by set: mean and standard deviation over seeds of the mean over targets."""
    names = list(dict.fromkeys(n for c in cells for n in c["natural"]["accuracy"]))
    columns = COLUMNS | {n: partial(accuracy_of, name=n) for n in names if n != "AutoMSDA"}
    lines = ["| set | targets | " + " | ".join(columns) + " |", "|" + "---|" * (len(columns) + 2)]
    by_set = {}
    for name in dict.fromkeys(c["set"] for c in cells):
        own = [c for c in cells if c["set"] == name]
        by_set[name] = np.array([by_seed(own, column) for column in columns.values()])
        n_targets = len({c["target"] for c in own})
        shown = " | ".join(map(mean_and_std, by_set[name]))
        lines.append(f"| {name.replace('*', ' †')} | {n_targets} | {shown} |")
    for label, group in GROUPS.items():
        rows = [row for name, row in by_set.items() if name in group]
        if rows:
            shown = " | ".join(f"**{mean_and_std(v)}**" for v in np.mean(rows, axis=0))
            lines.append(f"| **{label}** | {len(rows)} sets | {shown} |")
    return "\n".join(lines)


def accuracy_of(result: dict, name: str) -> float | None:
    return result["accuracy"].get(name)


def ablation_of(result: dict, name: str) -> float:
    return result["ablations"][name]


def by_seed(cells: list[dict], value: Callable) -> list[float]:
    """Means over targets, one for each seed."""
    seeds = dict.fromkeys(c["seed"] for c in cells)
    return [mean(value(c["natural"]) for c in cells if c["seed"] == seed) for seed in seeds]


def mean_and_std(values: np.ndarray) -> str:
    if np.isnan(values).any():
        return "–"
    spread = f" ± {np.std(values):.1f}" if len(values) > 1 else ""
    return f"{np.mean(values):.1f}{spread}"


def best_ordinary(result: dict) -> float:
    rivals_ = [v for n, v in result["accuracy"].items() if n not in OURS]
    return max(*rivals_, *(result["members"][n] for n in result["ordinary"]))


COLUMNS = {
    "AutoMSDA": partial(accuracy_of, name="AutoMSDA"),
    "pick": partial(ablation_of, name="pick"),
    "best ordinary": best_ordinary,
    "ordinary only": partial(ablation_of, name="ordinary only"),
}


def summary(cells: list[dict]) -> str:
    lines = []
    for label, group in {**GROUPS, "all": SETS}.items():
        own = [c for c in cells if c["set"] in group]
        if not own:
            continue
        part = [c["natural"] for c in own]
        lines += [
            f"\n**{label} sets** ({len(part)} tasks)\n",
            *(f"- {line}" for line in _rival_lines(own)),
            *(f"- {line}" for line in _ablation_lines(part)),
            *(f"- {line}" for line in _balanced_lines(own)),
            *(f"- {line}" for line in _trust_lines(part)),
            *(f"- {line}" for line in _share_lines(own)),
            *(f"- {line}" for line in _label_lines(part)),
        ]
    return "\n".join(lines)


def _rival_lines(cells: list[dict]) -> list[str]:
    gains = [
        accuracy_of(c["natural"], "AutoMSDA") - ablation_of(c["natural"], "pick") for c in cells
    ]
    regret, below = [], []
    for name in dict.fromkeys(c["set"] for c in cells):
        own = [c for c in cells if c["set"] == name]
        ours, pick, best = (
            np.mean(by_seed(own, COLUMNS[n])) for n in ("AutoMSDA", "pick", "best ordinary")
        )
        regret.append(best - ours)
        if ours < pick:
            below.append(f"{name.strip('*')} ({ours - pick:+.1f})")
    return [
        "more than 2 points below the pick on "
        f"{np.mean(np.array(gains) < -0.02):.1%} of the tasks; "
        f"below it on average over a set: {', '.join(below) or 'none'}",
        f"regret against the best ordinary classifier in hindsight, mean over sets: "
        f"{np.mean(regret):.1f}",
    ]


def _ablation_lines(part: list[dict]) -> list[str]:
    shown = [f"{n} {mean(c['ablations'][n] for c in part):.1f}" for n in part[0]["ablations"]]
    return ["pools, mean over tasks: " + ", ".join(shown)]


def _trust_lines(part: list[dict]) -> list[str]:
    known = [c for c in part if c["trust"][1] is not None]
    error = mean(abs(c["trust"][1] - c["accuracy"]["AutoMSDA"]) for c in known)
    inside = np.mean([c["trust"][0] <= c["accuracy"]["AutoMSDA"] <= c["trust"][2] for c in known])
    rivals_ = [
        f"{n} {mean(abs(c['estimates'][n] - c['accuracy']['AutoMSDA']) for c in known):.1f}"
        for n in known[0]["estimates"]
    ]
    return [
        f"estimate: mean absolute error {error:.1f} points, 80 % interval holds {inside:.0%}, "
        f"withheld on {len(part) - len(known)} tasks",
        "mean absolute error of other estimates of the same accuracy: " + ", ".join(rivals_),
    ]


def _balanced_lines(cells: list[dict]) -> list[str]:
    """Balanced accuracies of sets on which they differ from accuracies."""
    shown = []
    for name in dict.fromkeys(c["set"] for c in cells):
        own = [c["natural"] for c in cells if c["set"] == name]
        rivals_ = [n for n in own[0]["accuracy"] if n not in OURS]
        best = max(rivals_, key=lambda n: mean(c["balanced"][n] for c in own))
        balanced = mean(c["balanced"]["AutoMSDA"] for c in own)
        if abs(balanced - mean(c["accuracy"]["AutoMSDA"] for c in own)) > 2:
            rival = mean(c["balanced"][best] for c in own)
            shown.append(f"{name.strip('*')} {balanced:.1f} ({best}: {rival:.1f})")
    return [
        "balanced accuracy of unequal classes, beside the best fixed rival: " + ", ".join(shown)
    ]


def _share_lines(cells: list[dict]) -> list[str]:
    lines = []
    cells = [c for c in cells if "90:10" in c]
    for label in ("90:10", "50:50"):
        gains, told = {}, {}
        for name in dict.fromkeys(c["set"] for c in cells):
            own = [c[label]["accuracy"] for c in cells if c["set"] == name]
            gains[name] = mean(a["AutoMSDA"] - a["logistic, common"] for a in own)
            told[name] = mean(a["AutoMSDA, shares given"] - a["logistic, common"] for a in own)
        for who, found in (("AutoMSDA", gains), ("AutoMSDA, shares given", told)):
            worst = min(found, key=found.get)
            below = sum(g < -2 for g in found.values())
            lines.append(
                f"targets of {label}, {who}: {np.mean(list(found.values())):+.1f} points over "
                f"logistic regression, common scale; more than 2 points below on {below} of "
                f"{len(found)} sets (worst {worst}: {found[worst]:+.1f})"
            )
    return lines


def _label_lines(part: list[dict]) -> list[str]:
    all_ = [c["labels"] for c in part if str(max(N_LABELS)) in c.get("labels", {})]
    shown = [
        f"{n}: " + " / ".join(f"{mean(c[str(n)][k] for c in all_):.1f}" for k in range(3))
        for n in N_LABELS
    ]
    return [
        "labels: accuracy / error of the estimate / accuracy of the ordinary classifier that was "
        f"best on held-out sources, taught the same labels; first target of {len(all_)} sets: "
        + ", ".join(shown)
    ]


def spread(n: int, most: int | None) -> list[int]:
    """Return at most that many of n positions, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most or n)).round().astype(int)).tolist()


def option_parser(doc: str, out: str) -> argparse.ArgumentParser:
    """Return a parser of the options that all benchmarks on these sets have."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(out))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--jobs", type=int, default=1)
    return parser


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the options, and make the output folder."""
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def main() -> None:
    parser = option_parser(__doc__, "out/selection")
    parser.add_argument(
        "--skewed",
        type=int,
        help="most targets of a set, with the first seed, whose class proportions are also changed",
    )
    parser.add_argument("--targets", type=int, help="most targets of a set, evenly spread")
    options = parse(parser)
    todo = []
    for seed in range(options.seeds):
        for name in options.sets.split(","):
            n = len(SETS[name]().domain_names)
            skewed_targets = spread(n, options.skewed) if seed == 0 or not options.skewed else []
            for target in spread(n, options.targets):
                path = options.out / f"{name.strip('*')}-{target}-{seed}.json"
                skew = target in skewed_targets
                todo.append((path, name, target, seed, options.rows, skew))
    open_cells = [cell for cell in todo if not cell[0].exists()]
    Parallel(n_jobs=options.jobs, verbose=5)(delayed(run_cell)(*cell) for cell in open_cells)
    cells = [json.loads(path.read_text()) for path, *_ in todo if path.exists()]
    print(table(cells) + "\n\n" + summary(cells))


if __name__ == "__main__":
    main()
