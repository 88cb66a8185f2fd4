"""Fits that were stopped: what is kept is found again, and nothing else changes."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import mixda
from mixda._core.resume import cache_until_done
from mixda.cli import run
from mixda.datasets import make_shifted_toy
from mixda.em import _cache, cached_mixture
from mixda.mixture import Mixture

TASK = make_shifted_toy(random_state=2).as_task()
NAMES = np.array(["ok", "worn", "broken", "lost"])


@pytest.fixture(autouse=True)
def keep_all(monkeypatch):
    monkeypatch.setattr(_cache, "_CACHE_AFTER_SECONDS", -1.0)


def fit(X, n_components, random_state, verbose):
    return Mixture([1.0], [random_state.normal(size=2)], [[1.0, float(n_components)]])


def test_what_was_fitted_is_not_fitted_again(tmp_path):
    calls = []

    def counted(X, **settings):
        calls.append(settings)
        return fit(X, **settings)

    def both():
        rng = np.random.default_rng(0)
        found = [
            cached_mixture(tmp_path, counted, X, n_components=k, random_state=rng, verbose=False)
            for X, k in [(np.zeros((2, 3)), 1), (np.zeros((3, 2)), 1), (np.zeros((2, 3)), 2)]
        ]
        return found, rng.random()

    first, after = both()
    assert len(calls) == 3
    assert both() == (first, after)  # also the next random number
    assert len(calls) == 3
    for path in tmp_path.iterdir():
        path.write_bytes(b"damaged")
    assert both() == (first, after)
    assert len(calls) == 6


@pytest.mark.parametrize("kind", ["MT19937", "Philox", "SFC64", "PCG64DXSM"])
def test_every_kind_of_generator_goes_on(tmp_path, kind):
    def found():
        rng = np.random.Generator(getattr(np.random, kind)(0))
        rng.integers(9, size=3, dtype=np.int32)  # half of a word is left over
        p = cached_mixture(tmp_path, fit, np.zeros(2), n_components=1, random_state=rng, verbose=0)
        return p, rng.integers(99, dtype=np.int32), rng.random()

    assert found() == found()
    assert len(list(tmp_path.iterdir())) == 1


def test_quick_fits_are_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(_cache, "_CACHE_AFTER_SECONDS", 60.0)
    rng = np.random.default_rng(0)
    cached_mixture(tmp_path, fit, np.zeros(2), n_components=1, random_state=rng, verbose=False)
    assert not any(tmp_path.iterdir())


def test_only_own_files_are_deleted_and_only_at_the_end(tmp_path):
    folder = tmp_path / "kept"
    mine = f"{'0' * 64}.gmm"
    folder.mkdir()
    (folder / mine).touch()
    with pytest.raises(ZeroDivisionError), cache_until_done(folder):
        _ = 1 / 0
    assert (folder / mine).exists()
    (folder / "theirs.gmm").touch()
    with cache_until_done(folder):
        pass
    assert [path.name for path in folder.iterdir()] == ["theirs.gmm"]
    (folder / "theirs.gmm").unlink()
    with cache_until_done(folder):
        pass
    assert not folder.exists()


@pytest.mark.parametrize("name", ["GMMWBT", "GMMDaDiL", "GMMOTDA"])
def test_a_stopped_fit_goes_on_with_the_same_result(name, tmp_path, monkeypatch):
    y = NAMES.astype(object)[TASK.y]  # objects, as pandas has them
    folder = tmp_path / "kept"
    plain = getattr(mixda, name)(random_state=0).fit(TASK.X, y, sample_domain=TASK.sample_domain)

    def again(limit):
        calls = 0

        def limited(verb):
            def counted(*arguments, **settings):
                nonlocal calls
                calls += 1
                if calls > limit:
                    raise KeyboardInterrupt
                return verb(*arguments, **settings)

            counted.__name__ = verb.__name__
            return counted

        with monkeypatch.context() as patch:
            for verb in (mixda.fit_mixture, mixda.fit_labeled_mixture):
                patch.setattr(
                    f"mixda.estimators._mixture_classifier.{verb.__name__}", limited(verb)
                )
            model = getattr(mixda, name)(random_state=0, checkpoint=folder)
            try:
                model.fit(TASK.X, y, sample_domain=TASK.sample_domain)
            except KeyboardInterrupt:
                return None, calls
        return model, calls

    limit = 1
    assert again(limit)[0] is None
    assert again(np.inf)[1] > 0
    model, calls = again(np.inf)
    assert calls == 0
    proba = model.predict_proba(TASK.X_target)
    assert np.array_equal(proba, plain.predict_proba(TASK.X_target))
    assert list(model.classes_) == list(plain.classes_)


def test_the_dictionary_goes_on_too(tmp_path, monkeypatch):
    monkeypatch.setattr("mixda.dictionary._checkpoint._SECONDS_BETWEEN", 0.0)
    settings = {"random_state": 0, "tol": 0.0, "n_iter": 8, "checkpoint": tmp_path}

    def fitted(**more):
        model = mixda.GMMDaDiL(**settings, **more)
        return model.fit(TASK.X, TASK.y, sample_domain=TASK.sample_domain)

    def stop(d):
        if len(d.history.loss) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(callback=stop)
    assert any(path.suffix == ".dictionary" for path in tmp_path.iterdir())
    steps = []
    model = fitted(callback=lambda d: steps.append(len(d.history.loss)))
    assert min(steps) > 4
    assert not any(path.suffix == ".dictionary" for path in tmp_path.iterdir())
    settings["checkpoint"] = None
    assert np.array_equal(model.dictionary_.history.loss, fitted().dictionary_.history.loss)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for k in (1, 2, 3, -4):
        rows = TASK.sample_domain == k
        np.savez(folder / f"d{k}.npz", X=TASK.X[rows], y=NAMES[TASK.y[rows]])
    return folder


def command(files, output, *more):
    sources = [str(files / f"d{k}.npz") for k in (1, 2, 3)]
    target = str(files / "d-4.npz")
    return ["adapt", *sources, "--target", target, "--label", "y", "-o", str(output), "-q", *more]


@pytest.mark.parametrize("method", ["auto", "dadil"])
def test_a_killed_command_goes_on(files, tmp_path, method):
    output = tmp_path / "m.mixda"
    folder = tmp_path / "m.mixda.checkpoint"
    code = (
        "import mixda.em._cache as cache, mixda.cli as cli, sys; "
        "cache._CACHE_AFTER_SECONDS = -1.0; sys.exit(cli.run({!r}))"
    )
    arguments = command(files, output, "--method", method)
    child = subprocess.Popen([sys.executable, "-c", code.format(arguments)])
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and child.poll() is None and not any(folder.glob("*.gmm")):
        time.sleep(0.002)
    child.send_signal(signal.SIGKILL)
    child.wait()
    if not output.exists():
        assert any(folder.glob("*.gmm"))
    assert run(arguments) == 0
    assert not folder.exists()
    assert run(command(files, tmp_path / "plain.mixda", "--method", method)) == 0
    found, plain = (mixda.AdaptedModel.load(tmp_path / f"{n}.mixda") for n in ("m", "plain"))
    assert np.array_equal(found.predict_proba(TASK.X_target), plain.predict_proba(TASK.X_target))
    assert "checkpoint" not in found.settings["parameters"]


def test_an_interrupted_command_says_how_to_go_on(files, tmp_path, monkeypatch, capsys):
    def stopped(*_, checkpoint, **__):
        checkpoint.mkdir()
        (checkpoint / f"{'0' * 64}.gmm").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr("mixda.workflow.adapt_files", stopped)
    assert run(command(files, tmp_path / "m.mixda")) == 130
    assert f"resume from {tmp_path / 'm.mixda.checkpoint'}" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="words of the system differ")
def test_a_file_in_the_way_is_said(files, tmp_path, capsys):
    (tmp_path / "m.mixda.checkpoint").write_text("a diary")
    assert run(command(files, tmp_path / "m.mixda")) == 2
    assert "checkpoint folder: File exists." in capsys.readouterr().err
    assert (tmp_path / "m.mixda.checkpoint").read_text() == "a diary"
    assert not (tmp_path / "m.mixda").exists()
