#!/usr/bin/env bash
# totalsegmentator_konfai needs PyTorch 2.12.1 and totalsegmentator-konfai 1.8.7 from the package index, and the models of
# its apps total and total-3mm from a hub; FIDOPT_TOTALSEGMENTATOR_APPS names a local folder of those apps where the network
# cannot be used. Models are had now and never while a case runs.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
hub=VBoussot/TotalSegmentator-KonfAI
missing() {
    echo "totalsegmentator_konfai needs $1" >&2
    exit 1
}
apps=${FIDOPT_TOTALSEGMENTATOR_APPS:-}
[ -z "$apps" ] || [ -d "$apps/total" ] || missing "its models, and FIDOPT_TOTALSEGMENTATOR_APPS names $apps, which holds no app named total"
. "$FIDOPT_INSTALL"
install_torch 2.12.1 "$folder/requirements.txt" || missing "PyTorch 2.12.1 and totalsegmentator-konfai 1.8.7 from the Python package index, and they could not be had"
if [ -n "$apps" ]; then
    ln -sfn "$(cd "$apps" && pwd)" "$FIDOPT_ENV/apps"
else
    export HF_HOME="$FIDOPT_ENV/models"
    for app in total total-3mm; do
        "$FIDOPT_ENV/bin/konfai-apps" download "$hub:$app" >/dev/null 2>&1 ||
            missing "its models, from huggingface.co/$hub or a local folder of its apps that FIDOPT_TOTALSEGMENTATOR_APPS names, and they could not be had"
    done
fi
