#!/usr/bin/env bash
# corrfield needs a GPU (its code calls CUDA throughout), PyTorch and what requirements.txt pins, and the authors' source,
# which is in no package index: FIDOPT_CORRFIELD_SOURCE names the folder corrfield/ of multimodallearning/Lung250M-4B at
# commit 53598ca. corrfield@l2r needs the Learn2Reg organisers' copy too: FIDOPT_CORRFIELD_L2R_SOURCE names
# examples/docker/corrfield/src of MDL-UzL/L2R.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
missing() {
    echo "corrfield needs $1" >&2
    exit 1
}
[ -n "${FIDOPT_CORRFIELD_SOURCE:-}" ] || missing "its authors' source, corrfield/ of github.com/multimodallearning/Lung250M-4B at commit 53598ca: name that folder in FIDOPT_CORRFIELD_SOURCE"
[ -f "$FIDOPT_CORRFIELD_SOURCE/corrfield.py" ] || missing "corrfield.py, and FIDOPT_CORRFIELD_SOURCE names $FIDOPT_CORRFIELD_SOURCE, which has none"
. "$FIDOPT_INSTALL"
install_torch 2.13.0 "$folder/requirements.txt" || missing "PyTorch 2.13.0 and SimpleITK from the Python package index, and they could not be had"
cp -r "$FIDOPT_CORRFIELD_SOURCE" "$FIDOPT_ENV/source"
if [ -n "${FIDOPT_CORRFIELD_L2R_SOURCE:-}" ]; then
    [ -f "$FIDOPT_CORRFIELD_L2R_SOURCE/corrfield.py" ] || missing "corrfield.py, and FIDOPT_CORRFIELD_L2R_SOURCE names $FIDOPT_CORRFIELD_L2R_SOURCE, which has none"
    cp -r "$FIDOPT_CORRFIELD_L2R_SOURCE" "$FIDOPT_ENV/source_l2r"
fi
"$FIDOPT_ENV/bin/python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || missing "a GPU that PyTorch can use, and there is none here"
