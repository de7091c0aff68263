#!/usr/bin/env bash
# run.sh IMAGE OUTDIR: writes OUTDIR/labels.nii.gz and the names of its values, OUTDIR/labels.json.
set -euo pipefail
exec "$FIDOPT_ENV/bin/python" "$(dirname "$0")/segment.py" "$1" "$2"
