"""Small adapted models for the tests of reports, and a parser that knows what a page holds."""

from html.parser import HTMLParser

import numpy as np

from mixda import AdaptedModel, Mixture, learn_dictionary, transport_plan
from mixda.model import Domain, novelty_threshold
from mixda.rules import Posterior

VOID = {"meta", "br", "input", "link", "hr"}
NAUGHTY = ["</script><img src=x onerror=alert(1)>", '"><svg onload=alert(2)>', "a&amp;b\x00\u202e'"]


def adapted_model(
    n_classes=3, n_sources=2, n_features=3, classes=None, dictionary=True, seed=0, **fields
):
    """A model whose domains are shifted copies of each other, with samples and labels."""
    rng = np.random.default_rng(seed)
    classes = np.array([f"class {k}" for k in range(n_classes)] if classes is None else classes)
    centers = 4 * rng.normal(size=(n_classes, n_features))

    def domain(shift, labels=None):
        stds = rng.uniform(0.4, 0.9, (2 * n_classes, n_features))
        means = np.repeat(centers, 2, axis=0) + shift + 0.5 * rng.normal(size=stds.shape)
        weights = np.full(len(means), 1 / len(means))
        return Mixture(weights, means, stds, labels, None if labels is None else classes)

    labels = np.repeat(np.eye(n_classes), 2, axis=0)
    sources = [domain(rng.normal(size=n_features), labels) for _ in range(n_sources)]
    target = domain(1.5 * rng.normal(size=n_features))
    found = learn_dictionary(sources, target, n_atoms=2, n_iter=10) if dictionary else None
    adapted = found.target if dictionary else sources[0]
    names = fields.pop("names", [f"site {k}" for k in range(n_sources)] + ["new site"])
    parts = {
        "feature_names": tuple(f"x{k}" for k in range(n_features)),
        "classes": classes,
        "method": "GMMDaDiL" if dictionary else "GMMWBT",
        "rule": Posterior(adapted),
        "encoder": None,
        "sources": tuple(Domain(n, m, 100) for n, m in zip(names, sources, strict=False)),
        "target": Domain(names[-1], target, 50),
        "labeled_target": adapted,
        "dictionary": found,
        "plan": transport_plan(adapted, target).plan,
        "novelty_threshold": novelty_threshold([*sources, target]),
        "settings": {"created": "2026-01-31T10:00:00+00:00", "versions": {"mixda": "0.1.0"}},
    }
    model = AdaptedModel(**{**parts, **fields})
    X, y = adapted.sample(80, seed)
    return model, X, y


class Page(HTMLParser):
    """Checks that tags are balanced; collects them, their attributes and the visible text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.text, self.mistakes = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        if len(set(names)) != len(names):
            self.mistakes.append(f"attribute twice in {tag}")
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.mistakes.append(f"</{tag}> closes something else")

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).replace("\xa0", " ").split())

    def all(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]
