#!/usr/bin/env bash
# ants needs antspyx 0.6.3 from the package index, at the versions and hashes of requirements.txt.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
. "$FIDOPT_INSTALL"
install_packages "$folder/requirements.txt" || {
    echo "ants needs antspyx 0.6.3 from the Python package index, and it could not be had" >&2
    exit 1
}
