#!/usr/bin/env bash
# run.sh FIXED MOVING OUTDIR: writes OUTDIR/DVF.nii.gz. Each image is multiplied by its lung mask.
set -euo pipefail
exec "$FIDOPT_ENV/bin/python" "$(dirname "$0")/register.py" multigradicon "$1" "$2" "$3/DVF.nii.gz" --lung-masks
