#!/usr/bin/env bash
# fireants needs PyTorch 2.13.0 and fireants 1.5.0 from the package index; requirements.txt pins and hashes all
# but PyTorch, of which pip takes the build that this machine's index gives it.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
. "$FIDOPT_INSTALL"
install_torch 2.13.0 "$folder/requirements.txt" || {
    echo "fireants needs PyTorch 2.13.0 and fireants 1.5.0 from the Python package index, and they could not be had" >&2
    exit 1
}
