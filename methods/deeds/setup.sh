#!/usr/bin/env bash
# deeds needs a built deedsBCV, whose source its author publishes (mattiaspaul/deedsBCV, commit 00b4653) and which is in
# no package index: FIDOPT_DEEDS_BIN names it. SimpleITK and NumPy come from the index, pinned in requirements.txt.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
missing() {
    echo "deeds needs $1" >&2
    exit 1
}
[ -n "${FIDOPT_DEEDS_BIN:-}" ] || missing "the program deedsBCV (github.com/mattiaspaul/deedsBCV, commit 00b4653), built by you: name it in FIDOPT_DEEDS_BIN"
[ -x "$FIDOPT_DEEDS_BIN" ] || missing "a program that can be run, and FIDOPT_DEEDS_BIN names $FIDOPT_DEEDS_BIN"
. "$FIDOPT_INSTALL"
install_packages "$folder/requirements.txt" || missing "SimpleITK and NumPy from the Python package index, and they could not be had"
ln -sfn "$(cd "$(dirname "$FIDOPT_DEEDS_BIN")" && pwd)/$(basename "$FIDOPT_DEEDS_BIN")" "$FIDOPT_ENV/deedsBCV"
