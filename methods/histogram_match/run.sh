#!/usr/bin/env bash
# run.sh IMAGE OUTDIR: writes OUTDIR/image.nii.gz.
set -euo pipefail
exec "$FIDOPT_ENV/bin/python" "$(dirname "$0")/synthesise.py" "$1" "$2/image.nii.gz"
