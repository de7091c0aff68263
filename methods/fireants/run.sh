#!/usr/bin/env bash
# run.sh FIXED MOVING OUTDIR: writes OUTDIR/DVF.nii.gz.
set -euo pipefail
exec "$FIDOPT_ENV/bin/python" "$(dirname "$0")/register.py" "$1" "$2" "$3/DVF.nii.gz"
