#!/usr/bin/env bash
# multigradicon_lungmask needs PyTorch, unigradicon 1.0.5 and ITK 5.4.7 from the package index (without its own pin pip would take a
# pre-release of ITK), and the authors' weights: a file of a release, which FIDOPT_MULTIGRADICON_WEIGHTS names where it
# was fetched before, and which the tool fetches itself where the network allows it.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
missing() {
    echo "multigradicon_lungmask needs $1" >&2
    exit 1
}
address=https://github.com/uncbiag/uniGradICON/releases/download/multigradicon_weights/Step_2_final.trch
[ -z "${FIDOPT_MULTIGRADICON_WEIGHTS:-}" ] || [ -f "$FIDOPT_MULTIGRADICON_WEIGHTS" ] || missing "its weights, and FIDOPT_MULTIGRADICON_WEIGHTS names $FIDOPT_MULTIGRADICON_WEIGHTS, which is no file"
. "$FIDOPT_INSTALL"
install_torch 2.13.0 "$folder/requirements.txt" torchvision==0.28.0 || missing "PyTorch 2.13.0, unigradicon 1.0.5 and ITK 5.4.7 from the Python package index, and they could not be had"
weights="$FIDOPT_ENV/network_weights/multigradicon1.0/Step_2_final.trch"
mkdir -p "$(dirname "$weights")"
if [ -n "${FIDOPT_MULTIGRADICON_WEIGHTS:-}" ]; then
    cp "$FIDOPT_MULTIGRADICON_WEIGHTS" "$weights"
else
    "$FIDOPT_ENV/bin/python" -c 'import sys, urllib.request; urllib.request.urlretrieve(*sys.argv[1:3])' \
        "$address" "$weights.part" 2>/dev/null || missing "its weights ($address): fetch them and name the file in FIDOPT_MULTIGRADICON_WEIGHTS"
    mv "$weights.part" "$weights"
fi
