"""The same for samples instead of components: DaDiL, WJDOT, and the steps of WBT and JCPOT."""

from mixda.empirical._dictionary import (
    JointTransport,
    learn_empirical_dictionary,
    learn_joint_transport,
    point_cloud,
)
from mixda.empirical._steps import carry_labels as carry_labels
from mixda.empirical._steps import hard_barycenter as hard_barycenter
from mixda.empirical._steps import hard_transport as hard_transport
from mixda.empirical._steps import send_samples as send_samples

__all__ = ["JointTransport", "learn_empirical_dictionary", "learn_joint_transport", "point_cloud"]
