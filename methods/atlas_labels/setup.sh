#!/usr/bin/env bash
# atlas_labels needs SimpleITK and NumPy from the package index, and an atlas: FIDOPT_ATLAS_LABELS names a folder with
# image.nii.gz, labels.nii.gz and labels.json ({"1": "liver"}) of a development case, never of a test case.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
missing() {
    echo "atlas_labels needs $1" >&2
    exit 1
}
[ -n "${FIDOPT_ATLAS_LABELS:-}" ] || missing "an atlas, a development case and never a test case: name a folder with image.nii.gz, labels.nii.gz and labels.json in FIDOPT_ATLAS_LABELS"
for file in image.nii.gz labels.nii.gz labels.json; do
    [ -f "$FIDOPT_ATLAS_LABELS/$file" ] || missing "$file, and FIDOPT_ATLAS_LABELS names $FIDOPT_ATLAS_LABELS, which has none"
done
. "$FIDOPT_INSTALL"
install_packages "$folder/requirements.txt" || missing "SimpleITK and NumPy from the Python package index, and they could not be had"
mkdir "$FIDOPT_ENV/atlas"
cp "$FIDOPT_ATLAS_LABELS"/{image.nii.gz,labels.nii.gz,labels.json} "$FIDOPT_ENV/atlas/"
