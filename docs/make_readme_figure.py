"""Draw docs/img/shifted_toy.png, the figure of the README, and print the accuracies over seeds.

Run ``python docs/make_readme_figure.py [FILE]`` (requires the report extra).
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

import mixda

CLASSES = [0, 1]
SEEDS = range(8)


def main() -> None:
    default = Path(__file__).parent / "img" / "shifted_toy.png"
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    task, is_source, source_only, adapted = solve(0)

    fig, axes = plt.subplots(1, 4, figsize=(11, 2.9), sharex=True, sharey=True)
    mixda.plot.samples(task.X[is_source], task.y[is_source], ax=axes[0], size=3, alpha=0.3)
    axes[0].set_title("you have: labeled sources")
    mixda.plot.samples(task.X_target, ax=axes[1], size=3, alpha=0.3)
    axes[1].set_title("and a target without labels")
    for ax, name, model in ((axes[2], "sources only", source_only), (axes[3], "mixda", adapted)):
        predicted = model.predict(task.X_target)
        mixda.plot.samples(task.X_target, predicted, ax=ax, classes=CLASSES, size=3, alpha=0.3)
        accuracy = (predicted == task.y_target).mean()
        ax.set_title(f"{name}: {accuracy:.1%} right")
    mixda.plot.mixture(adapted.target_mixture_, ax=axes[3])
    axes[3].set(xlabel="", ylabel="")
    for ax in axes:
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        ax.title.set_fontsize(11)
    fig.tight_layout()
    fig.savefig(path, dpi=130, bbox_inches="tight", pad_inches=0.05)

    print("seed  sources only  GMM-DaDiL")
    for seed in SEEDS:
        task, _, *models = solve(seed)
        scores = [model.score(task.X_target, task.y_target) for model in models]
        print(f"{seed:4d}  {scores[0]:12.1%}  {scores[1]:9.1%}")


def solve(seed):
    task = mixda.datasets.make_shifted_toy(random_state=seed).as_task()
    is_source = task.sample_domain >= 0
    source_only = LogisticRegression().fit(task.X[is_source], task.y[is_source])
    adapted = mixda.GMMDaDiL(preset="paper", random_state=0)  # in the space of X
    adapted.fit(task.X, task.y, sample_domain=task.sample_domain)
    return task, is_source, source_only, adapted


if __name__ == "__main__":
    main()
