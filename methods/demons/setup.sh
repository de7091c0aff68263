#!/usr/bin/env bash
# demons needs SimpleITK and NumPy from the package index, at the versions and hashes of requirements.txt.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
. "$FIDOPT_INSTALL"
install_packages "$folder/requirements.txt" || {
    echo "demons needs SimpleITK 2.5.7 and NumPy 2.4.6 from the Python package index, and they could not be had" >&2
    exit 1
}
