"""The methods for samples instead of mixtures: DaDiL, WJDOT, and the steps of WBT and JCPOT."""

from mixda.empirical._clouds import point_cloud
from mixda.empirical._dictionary import learn_empirical_dictionary
from mixda.empirical._joint import JointTransport, learn_joint_transport
from mixda.empirical._steps import hard_barycenter as hard_barycenter
from mixda.empirical._steps import hard_transport as hard_transport
from mixda.empirical._steps import propagate_labels as propagate_labels
from mixda.empirical._steps import send_samples as send_samples

__all__ = ["JointTransport", "learn_empirical_dictionary", "learn_joint_transport", "point_cloud"]
