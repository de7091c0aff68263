#!/usr/bin/env bash
# run.sh FIXED MOVING OUTDIR: writes OUTDIR/DVF.nii.gz. A colour image's components become the channels of one image.
set -euo pipefail
exec "$FIDOPT_ENV/bin/python" "$(dirname "$0")/register.py" "$1" "$2" "$3/DVF.nii.gz"
