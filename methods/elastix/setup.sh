#!/usr/bin/env bash
# elastix needs itk-elastix and ITK from the package index, at the versions and hashes of requirements.txt.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
. "$FIDOPT_INSTALL"
install_packages "$folder/requirements.txt" || {
    echo "elastix needs itk-elastix 0.25.3 and ITK 5.4.7 from the Python package index, and they could not be had" >&2
    exit 1
}
# The first import compiles what it loads; here, so that the first case is not slower than the others.
"$FIDOPT_ENV/bin/python" "$folder/register.py" --import-only
