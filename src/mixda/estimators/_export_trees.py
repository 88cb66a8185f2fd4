"""Fitted forests and boosted trees of scikit-learn as rules: thresholds and leaf values only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixda._core.errors import MixdaError
from mixda._core.typing import Array
from mixda.rules import Chain, Normalize, Rule, Softmax, Trees


class _Tree(NamedTuple):
    """One binary tree; `left` is -1 in leaves, `value` has one row per node."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[Any]
    value: Array


def forest_rule(forest: Any) -> Rule:
    """Return the average of the class proportions in the leaves (random forests, extra-trees)."""
    n_trees = len(forest.estimators_)
    trees = []
    for estimator in forest.estimators_:
        tree = estimator.tree_
        shares = tree.value[:, 0, :] / tree.value[:, 0, :].sum(axis=1, keepdims=True) / n_trees
        trees.append(
            _Tree(
                tree.children_left,
                tree.children_right,
                tree.feature,
                _round_down(tree.threshold),
                shares,
            )
        )
    # Half precision: shares are off by less than one in two thousand, and a file half as large.
    return Chain((_join(trees, np.zeros(len(forest.classes_)), np.float16), Normalize()))


def boosting_rule(booster: Any) -> Rule:
    """Return the softmax of summed trees (histogram gradient boosting)."""
    n_outputs = booster.n_trees_per_iteration_
    n_classes = len(booster.classes_)
    trees = []
    for iteration in booster._predictors:
        for output, predictor in enumerate(iteration):
            nodes = predictor.nodes
            if nodes["is_categorical"].any():
                raise MixdaError(
                    "HistGradientBoostingClassifier with categorical features cannot be kept in a "
                    "model; encode them as numbers."
                )
            leaf = nodes["is_leaf"].astype(bool)
            value = np.zeros((len(nodes), n_classes))
            value[:, output if n_outputs > 1 else 1] = nodes["value"]
            left = np.where(leaf, -1, nodes["left"].astype(np.int64))
            right = nodes["right"].astype(np.int64)
            feature = np.where(leaf, 0, nodes["feature_idx"].astype(np.int64))
            trees.append(_Tree(left, right, feature, nodes["num_threshold"], value))
    offset = np.zeros(n_classes)
    offset[slice(None) if n_outputs > 1 else slice(1, 2)] = booster._baseline_prediction.ravel()
    return Chain((_join(trees, offset, np.float32), Softmax()))


def _join(trees: Iterable[_Tree], offset: Array, precision: Any) -> Trees:
    """Join trees, with the nodes in an order where a right child follows its left sibling."""
    feature, threshold, child, leaves, roots = [], [], [], [], []
    n_nodes = n_leaves = 0
    for tree in trees:
        order = _sibling_order(tree)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        leaf = tree.left[order] < 0
        children = np.where(leaf, 0, n_nodes + place[np.maximum(tree.left[order], 0)])
        children[leaf] = -1 - n_leaves - np.arange(leaf.sum())
        roots.append(n_nodes)
        feature.append(np.where(leaf, 0, tree.feature[order]))
        threshold.append(np.where(leaf, 0.0, tree.threshold[order]))
        child.append(children)
        leaves.append(tree.value[order][leaf])
        n_nodes, n_leaves = n_nodes + len(order), n_leaves + int(leaf.sum())
    return Trees(
        feature=np.concatenate(feature),
        threshold=np.concatenate(threshold),
        child=np.concatenate(child),
        roots=np.array(roots),
        leaves=np.vstack(leaves).astype(precision),
        offset=offset,
    )


def _sibling_order(tree: _Tree) -> NDArray[np.int64]:
    """Nodes in breadth-first order, siblings side by side."""
    order, level = [np.zeros(1, dtype=np.int64)], np.zeros(1, dtype=np.int64)
    while True:
        inner = level[tree.left[level] >= 0]
        if not len(inner):
            return np.concatenate(order)
        level = np.column_stack([tree.left[inner], tree.right[inner]]).ravel()
        order.append(level)


def _round_down(threshold: Array) -> NDArray[np.float32]:
    """Return the largest single up to each threshold, so that singles compare as before."""
    single = threshold.astype(np.float32)
    return np.where(single > threshold, np.nextafter(single, np.float32(-np.inf)), single)
