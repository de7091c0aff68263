#!/usr/bin/env bash
# identity needs Python alone.
set -euo pipefail
"$FIDOPT_PYTHON" -m venv --without-pip "$FIDOPT_ENV"
