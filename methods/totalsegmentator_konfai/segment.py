"""Segment a CT by TotalSegmentator's KonfAI port, and write its label map with the names that the app gives."""

import json
import os
import subprocess
import sys
from pathlib import Path

import SimpleITK as sitk  # noqa: N813 - the package's customary name

HUB = "VBoussot/TotalSegmentator-KonfAI"
#: Endings of what the port may write.
ENDINGS = (".nii.gz", ".mha", ".nrrd")


def main(image: str, outdir: str) -> None:
    """Run the app as its command does, at its defaults; write labels.nii.gz and labels.json."""
    environment = Path(os.environ["FIDOPT_ENV"])
    name = json.loads(os.environ.get("FIDOPT_SETTINGS") or "{}").get("app", "total")
    local = environment / "apps" / name
    app = str(local.resolve()) if local.exists() else f"{HUB}:{name}"
    device = os.environ["FIDOPT_DEVICE"]
    words = (
        ["--gpu", device.partition(":")[2]] if device.startswith("cuda") else ["--cpu", os.environ["FIDOPT_THREADS"]]
    )
    # The command starts others that lie beside it; its models were had when the environment was made.
    told = {
        **os.environ,
        "PATH": f"{environment / 'bin'}:{os.environ.get('PATH', '')}",
        "HF_HOME": str(environment / "models"),
        "HF_HUB_OFFLINE": "1",
    }
    os.environ.update(told)
    command = [environment / "bin" / "konfai-apps", "infer", app, "-i", image, "-o", "Output", *words]
    if subprocess.run(command, env=told, check=False).returncode:
        sys.exit(f"the app {app} could not be run; its models are had when the environment is made")
    found = sorted(path for path in Path("Output").rglob("*") if path.name.endswith(ENDINGS))
    if len(found) != 1:
        there = ", ".join(map(str, found)) or "none"
        sys.exit(f"one label map of the app {app} is expected under Output, there is {there}")
    labels = sitk.Cast(sitk.ReadImage(str(found[0])), sitk.sitkUInt16)
    # What is read back may lie a rounding beside the grid that went in.
    labels.CopyInformation(sitk.ReadImage(image))
    sitk.WriteImage(labels, str(Path(outdir) / "labels.nii.gz"), useCompression=True)
    (Path(outdir) / "labels.json").write_text(json.dumps(names(app), indent=1) + "\n", encoding="utf-8")


def names(app: str) -> dict[str, str]:
    """Return the names of an app's values, in structures.json's spelling: ``kidney_left``."""
    from konfai_apps.app_repository import get_app_repository_info

    terminology = get_app_repository_info(app, force_update=False).get_terminology()
    if not terminology:
        sys.exit(f"the app {app} does not name its structures")
    return {str(value): entry.name.strip().lower().replace(" ", "_") for value, entry in terminology.items() if value}


if __name__ == "__main__":
    main(*sys.argv[1:3])
