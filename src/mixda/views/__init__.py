"""The data behind the figures, computed without a plotting library.

`mixda.plot` draws it with matplotlib and `mixda.report` as SVG, so that both show the same thing.
"""

from mixda.views._dictionaries import Coordinates as Coordinates
from mixda.views._dictionaries import Curves as Curves
from mixda.views._dictionaries import barycentric_coordinates as barycentric_coordinates
from mixda.views._dictionaries import interpolation_frames as interpolation_frames
from mixda.views._dictionaries import learning_curves as learning_curves
from mixda.views._domains import DomainMap as DomainMap
from mixda.views._domains import class_gap as class_gap
from mixda.views._domains import default_domain_names as default_domain_names
from mixda.views._domains import domain_map as domain_map
from mixda.views._domains import embed_distances as embed_distances
from mixda.views._domains import pairwise_distances as pairwise_distances
from mixda.views._planes import Plane as Plane
from mixda.views._planes import common_plane as common_plane
from mixda.views._planes import ellipse_axes as ellipse_axes
from mixda.views._planes import feature_plane as feature_plane
from mixda.views._planes import square_roots as square_roots
from mixda.views._plans import UNLABELED as UNLABELED
from mixda.views._plans import OrderedPlan as OrderedPlan
from mixda.views._plans import most_probable_classes as most_probable_classes
from mixda.views._plans import order_plan as order_plan
from mixda.views._predictions import CertaintyBin as CertaintyBin
from mixda.views._predictions import ClassProportions as ClassProportions
from mixda.views._predictions import Confusion as Confusion
from mixda.views._predictions import certainty_bins as certainty_bins
from mixda.views._predictions import confusion as confusion
from mixda.views._predictions import label_codes as label_codes
from mixda.views._predictions import wilson_interval as wilson_interval
