"""
Three scanners teach a fourth
=============================

What ``make demo`` runs, without any download: digits from three labelled scanners are adapted to
a fourth one, a phone held askew, whose digits have no labels. Prints a table, saves the figures
and one HTML page that holds them all.
"""

import argparse
import base64
import html
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import ot  # noqa: F401  imported here so that the first method is not charged for it

import mixda

COMPONENTS = 3  # per class; chosen among 1, 2, 3 by looking at the target, so not a benchmark


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="folder of the results")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    data = mixda.datasets.load_digit_scanners(random_state=options.seed)
    task = data.as_task("phone")
    models = {
        "source only (logistic regression)": mixda.SourceOnly(),
        "GMM-WBT": mixda.GMMWBT(n_components=COMPONENTS, random_state=options.seed),
        "GMM-DaDiL": mixda.GMMDaDiL(n_components=COMPONENTS, random_state=options.seed),
    }
    rows = [fit_and_score(name, model, task) for name, model in models.items()]
    figures = {
        "scans.png": draw_scans(data),
        "accuracy.png": draw_accuracy(rows),
        "mixtures.png": draw_mixtures(data, models),
        "dictionary.png": draw_dictionary(data, models["GMM-DaDiL"]),
    }
    for name, figure in figures.items():
        figure.savefig(options.out / name, dpi=110)
    page = options.out / "index.html"
    page.write_text(html_page(data, rows, options.out, list(figures)), encoding="utf-8")

    print(f"\n{data}\nsources office, archive, library; target phone (labels hidden)\n")
    print(table(rows))
    print(f"\nreport: {page.resolve()}")


def fit_and_score(name, model, task):
    start = time.perf_counter()
    model.fit(task.X, task.y, sample_domain=task.sample_domain)
    seconds = time.perf_counter() - start
    return name, float(np.mean(model.predict(task.X_target) == task.y_target)), seconds


def table(rows):
    lines = [f"{'method':<36}{'target accuracy':>16}{'seconds':>9}"]
    lines += [f"{name:<36}{accuracy:>16.1%}{seconds:>9.1f}" for name, accuracy, seconds in rows]
    return "\n".join(lines)


def draw_scans(data):
    fig, axes = plt.subplots(4, 10, figsize=(8, 3.6), layout="constrained")
    for k, name in enumerate(data.domain_names):
        X, y = data.samples_of(k)
        for digit in range(10):
            ax = axes[k, digit]
            image = X[np.flatnonzero(y == digit)[0]].reshape(8, 8)
            ax.imshow(image, cmap="gray_r", vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
        axes[k, 0].set_ylabel(name, rotation=0, ha="right", va="center")
    return fig


def draw_accuracy(rows):
    fig, ax = plt.subplots(figsize=(6, 1.9), layout="constrained")
    names, accuracies, _ = zip(*rows, strict=True)
    color = [mixda.plot.UNLABELED, *mixda.plot.colors(len(rows) - 1)]
    bars = ax.barh(names, accuracies, color=color, height=0.6)
    ax.bar_label(bars, [f"{accuracy:.1%}" for accuracy in accuracies], padding=3)
    ax.invert_yaxis()
    ax.set(xlim=(0, 1.1), xticks=[], xlabel="")
    ax.tick_params(left=False)
    ax.spines[:].set_visible(False)
    return fig


def draw_mixtures(data, models):
    """The means of the labelled target mixtures, as the images that they are."""
    fig = plt.figure(figsize=(8, 5.0), layout="constrained")
    for part, name in zip(fig.subfigures(2, 1), ("GMM-WBT", "GMM-DaDiL"), strict=True):
        m = models[name].target_mixture_
        classes = m.labels.argmax(axis=1)
        axes = part.subplots(COMPONENTS, 10)
        for digit in range(10):
            means = m.means[classes == digit][:COMPONENTS]
            for k in range(COMPONENTS):
                axes[k, digit].axis("off")
                if k < len(means):
                    axes[k, digit].imshow(means[k].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
            axes[0, digit].set_title(data.class_names[digit], fontsize=9)
        part.suptitle(
            f"{name}: components of the target, by the class they were given", fontsize=10
        )
    return fig


def draw_dictionary(data, model):
    fig, axes = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
    loss = model.dictionary_.history.loss
    axes[0].plot(np.arange(len(loss)), loss, color=mixda.plot.PALETTE[0])
    axes[0].set(xlabel="iteration", ylabel="loss", ylim=(0, None))
    axes[0].spines[["top", "right"]].set_visible(False)
    mixda.plot.coordinates(model.dictionary_, ax=axes[1], domain_names=data.domain_names)
    return fig


CAPTIONS = {
    "scans.png": "Each scanner has digits of its own. The phone, the last row, is the target.",
    "accuracy.png": "Share of the phone's digits that each method names correctly.",
    "mixtures.png": "What the adapted mixtures believe a digit looks like on the phone.",
    "dictionary.png": "GMM-DaDiL: loss, and which atoms each scanner is made of.",
}

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 54rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } th, td { padding: .3rem .8rem; text-align: right; }
th:first-child, td:first-child { text-align: left; } tr { border-bottom: 1px solid #8886; }
figure { margin: 2rem 0; } img { max-width: 100%; background: white; border-radius: 4px; }
figcaption { opacity: .8; }
"""


def html_page(data, rows, folder, figures):
    """One page that needs no other file: the figures are inside."""
    cells = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{accuracy:.1%}</td><td>{seconds:.1f}</td></tr>"
        for name, accuracy, seconds in rows
    )
    pictures = "".join(
        f'<figure><img alt="{html.escape(CAPTIONS[name])}" src="data:image/png;base64,'
        f'{base64.b64encode((folder / name).read_bytes()).decode()}">'
        f"<figcaption>{html.escape(CAPTIONS[name])}</figcaption></figure>"
        for name in figures
    )
    sources = ", ".join(data.domain_names[:-1])
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>mixda demo</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>
<body><h1>Three scanners teach a fourth</h1>
<p>{html.escape(data.description)} Labelled sources: {sources}. Target without labels:
{data.domain_names[-1]}. mixda {mixda.__version__}.</p>
<table><tr><th>method</th><th>target accuracy</th><th>seconds</th></tr>{cells}</table>
{pictures}</body></html>
"""


if __name__ == "__main__":
    main()
