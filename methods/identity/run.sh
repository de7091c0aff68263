#!/usr/bin/env bash
# run.sh FIXED MOVING OUTDIR: writes OUTDIR/DVF.nii.gz, zero everywhere on the fixed grid.
set -euo pipefail
exec "$FIDOPT_ENV/bin/python" "$(dirname "$0")/zero_field.py" "$1" "$3/DVF.nii.gz"
