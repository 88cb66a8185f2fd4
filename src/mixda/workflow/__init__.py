"""From files to files: fit, adapt, predict, report; what the command line calls."""

from mixda.workflow._describe import describe as describe
from mixda.workflow._describe import describe_model as describe_model
from mixda.workflow._fit import (
    Prediction,
    adapt_files,
    fit_files,
    output_paths,
    predict_file,
    report_file,
)

__all__ = ["Prediction", "adapt_files", "fit_files", "output_paths", "predict_file", "report_file"]
