"""Four domains as files, and the commands that tests run on them."""

import numpy as np
import pandas as pd

from mixda.cli import run

CENTERS = {"ok": (0.0, 0.0, 0.0), "worn": (4.0, 0.0, 1.0), "broken": (0.0, 4.0, -1.0)}
SHIFTS = {"lab": 0.0, "north": 0.5, "south": -0.5, "plant": 1.2}


def make_domain(name, n=90):
    """Three classes around CENTERS, all moved by the domain's shift."""
    rng = np.random.default_rng(len(name) + ord(name[0]))
    state = np.repeat(list(CENTERS), n // 3)
    X = np.array([CENTERS[s] for s in state]) + SHIFTS[name] + 0.5 * rng.normal(size=(n, 3))
    frame = pd.DataFrame(X, columns=["speed", "load", "heat"]).assign(state=state, site=name)
    return frame.sample(frac=1.0, random_state=1, ignore_index=True)


def sources(folder, suffix=".csv"):
    return [folder / f"{name}{suffix}" for name in ("lab", "north", "south")]


def adapt(folder, *arguments, target="plant.csv", out):
    parts = [*arguments, "--target", folder / target, "--label", "state", "-q", "-o", out]
    return ["adapt", *map(str, parts)]


def predict(folder, data, out, *more, model="m.mixda"):
    model = folder / model
    assert run([*map(str, ("predict", model, data, "-q", "-o", out, *more))]) == 0
    return pd.read_csv(out) if out.suffix == ".csv" else pd.read_parquet(out)


def right(predicted, name="plant"):
    return np.mean(predicted["label"] == make_domain(name)["state"])
