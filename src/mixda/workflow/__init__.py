"""From files to files: fit, adapt, predict, report. The command line calls these functions."""

from mixda.workflow._adapt import adapt_files
from mixda.workflow._check import check
from mixda.workflow._describe import describe as describe
from mixda.workflow._describe import describe_model as describe_model
from mixda.workflow._describe import describe_trust as describe_trust
from mixda.workflow._fit import fit_files, fit_private_file, output_paths
from mixda.workflow._monitoring import explain_file, monitor_file, update_file
from mixda.workflow._predictions import Prediction, predict_file
from mixda.workflow._report import report_file
from mixda.workflow._target_labels import label_file

__all__ = [
    "Prediction",
    "adapt_files",
    "check",
    "explain_file",
    "fit_files",
    "fit_private_file",
    "label_file",
    "monitor_file",
    "output_paths",
    "predict_file",
    "report_file",
    "update_file",
]
