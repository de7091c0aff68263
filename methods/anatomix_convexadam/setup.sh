#!/usr/bin/env bash
# anatomix_convexadam needs a GPU (its code calls CUDA throughout), PyTorch and what requirements.txt pins, and the
# authors' repository with its weights, which is in no package index: FIDOPT_ANATOMIX_SOURCE names a checkout of
# neel-dey/anatomix at commit 4c86aee, with model-weights/anatomix.pth in it.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
missing() {
    echo "anatomix_convexadam needs $1" >&2
    exit 1
}
[ -n "${FIDOPT_ANATOMIX_SOURCE:-}" ] || missing "a checkout of github.com/neel-dey/anatomix at commit 4c86aee, with its weights: name that folder in FIDOPT_ANATOMIX_SOURCE"
for file in anatomix/registration/run_convex_adam_with_network_feats.py model-weights/anatomix.pth; do
    [ -f "$FIDOPT_ANATOMIX_SOURCE/$file" ] || missing "$file, and FIDOPT_ANATOMIX_SOURCE names $FIDOPT_ANATOMIX_SOURCE, which has none"
done
. "$FIDOPT_INSTALL"
install_torch 2.13.0 "$folder/requirements.txt" || missing "PyTorch 2.13.0, MONAI and SimpleITK from the Python package index, and they could not be had"
cp -r "$FIDOPT_ANATOMIX_SOURCE" "$FIDOPT_ENV/source"
"$FIDOPT_ENV/bin/python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || missing "a GPU that PyTorch can use, and there is none here"
