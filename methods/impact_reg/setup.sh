#!/usr/bin/env bash
# impact_reg needs PyTorch 2.12.1 (itk-impact, which the ConvexAdam presets run on, is built for 2.12) and
# impact-reg-konfai 1.8.7 from the package index. Its presets and their models come from a hub when a preset is first
# used; FIDOPT_IMPACTREG_PRESETS names a local folder of presets where the network cannot be used.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
missing() {
    echo "impact_reg needs $1" >&2
    exit 1
}
presets=${FIDOPT_IMPACTREG_PRESETS:-}
[ -z "$presets" ] || [ -d "$presets" ] || missing "its presets, and FIDOPT_IMPACTREG_PRESETS names $presets, which is no folder"
. "$FIDOPT_INSTALL"
install_torch 2.12.1 "$folder/requirements.txt" || missing "PyTorch 2.12.1 and impact-reg-konfai 1.8.7 from the Python package index, and they could not be had"
if [ -n "$presets" ]; then
    ln -sfn "$(cd "$presets" && pwd)" "$FIDOPT_ENV/presets"
else
    "$FIDOPT_ENV/bin/impact-reg-konfai" list >/dev/null 2>&1 || missing "its presets, from huggingface.co/VBoussot/ImpactReg or a local folder of them that FIDOPT_IMPACTREG_PRESETS names, and they could not be had"
fi
