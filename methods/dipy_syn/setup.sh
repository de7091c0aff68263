#!/usr/bin/env bash
# dipy_syn needs dipy 1.12.1 from the package index, at the versions and hashes of requirements.txt.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
. "$FIDOPT_INSTALL"
install_packages "$folder/requirements.txt" || {
    echo "dipy_syn needs dipy 1.12.1 from the Python package index, and it could not be had" >&2
    exit 1
}
