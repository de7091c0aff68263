#!/usr/bin/env bash
# histogram_match needs SimpleITK and NumPy from the package index, and an image of the target modality to take its grey
# values from: FIDOPT_HISTOGRAM_REFERENCE names the NIfTI file of a development case's target, never a test case's.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
missing() {
    echo "histogram_match needs $1" >&2
    exit 1
}
[ -n "${FIDOPT_HISTOGRAM_REFERENCE:-}" ] || missing "an image of the target modality, of a development case and never of a test case: name the NIfTI file in FIDOPT_HISTOGRAM_REFERENCE"
[ -f "$FIDOPT_HISTOGRAM_REFERENCE" ] || missing "an image, and FIDOPT_HISTOGRAM_REFERENCE names $FIDOPT_HISTOGRAM_REFERENCE, which is no file"
. "$FIDOPT_INSTALL"
install_packages "$folder/requirements.txt" || missing "SimpleITK and NumPy from the Python package index, and they could not be had"
"$FIDOPT_ENV/bin/python" "$folder/quantiles.py" "$FIDOPT_HISTOGRAM_REFERENCE" "$FIDOPT_ENV/quantiles.json" || missing "an image that SimpleITK reads, and $FIDOPT_HISTOGRAM_REFERENCE is none"
