#!/usr/bin/env bash
# convexadam_mind needs PyTorch 2.13.0 and convexadam 0.2.0 from the package index; requirements.txt pins and hashes all
# but PyTorch, of which pip takes the build that this machine's index gives it.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
. "$FIDOPT_INSTALL"
install_torch 2.13.0 "$folder/requirements.txt" || {
    echo "convexadam_mind needs PyTorch 2.13.0 and convexadam 0.2.0 from the Python package index, and they could not be had" >&2
    exit 1
}
