#!/usr/bin/env bash
# run.sh IMAGE OUTDIR: writes OUTDIR/labels.nii.gz and labels.json. A colour image is read as the mean of its components.
set -euo pipefail
exec "$FIDOPT_ENV/bin/python" "$(dirname "$0")/segment.py" "$1" "$2"
