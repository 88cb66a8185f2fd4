"""How a model shows itself, and what scikit-learn's tools expect of a fitted classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.notebook import summary_table
from mixda._core.text import listed
from mixda.model._domain import Domain
from mixda.model._trust import Trust


class ModelDisplay:
    """Base of `AdaptedModel`: its representations, and the attributes of a fitted classifier."""

    feature_names: tuple[str, ...]
    classes: NDArray[Any]
    method: str
    sources: tuple[Domain, ...]
    target: Domain
    trust: Trust | None
    settings: dict[str, Any]

    _estimator_type = "classifier"  # scikit-learn < 1.6 asks for it

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, under scikit-learn's name."""
        return self.classes

    @property
    def n_features_in_(self) -> int:
        """The number of columns, under scikit-learn's name."""
        return len(self.feature_names)

    def fit(self, X: Any = None, y: Any = None, **options: Any) -> Any:
        """Refuse to fit: a saved model is fitted. scikit-learn's tools look for this method."""
        raise MixdaError(
            "an AdaptedModel cannot be fitted again; fit an estimator such as AutoMSDA, or adapt "
            "the model further with mixda.monitoring.update."
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row."""
        raise NotImplementedError

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict` on rows whose classes are `y`."""
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(multi_class=len(self.classes) > 2),
            input_tags=InputTags(),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __repr__(self) -> str:
        sources = listed([domain.name for domain in self.sources], most=4)
        classes = listed(np.asarray(self.classes).tolist(), most=6)
        return (
            f"AdaptedModel(method={self.method!r}, sources=[{sources}], "
            f"target={self.target.name!r}, n_features={self.n_features_in_}, classes=[{classes}])"
        )

    def _repr_html_(self) -> str:
        sources = listed([domain.name for domain in self.sources], most=8)
        rows = [
            ("target", self.target.name),
            (f"{len(self.sources)} sources", sources),
            ("classes", listed(np.asarray(self.classes).tolist())),
            (f"{len(self.feature_names)} features", listed(self.feature_names)),
            ("trust", None if self.trust is None else self.trust.sentence()),
            ("created", self.settings.get("created")),
        ]
        return summary_table(f"AdaptedModel ({self.method})", rows)
