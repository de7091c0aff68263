"""Register a pair by a preset of IMPACT-Reg as a user runs it, and write its transform as a field."""

import json
import os
import subprocess
import sys
from pathlib import Path

import SimpleITK as sitk  # noqa: N813 - the package's customary name


def main(fixed: str, moving: str, out: str) -> None:
    """Register two files and write the field on the fixed image's grid."""
    preset = json.loads(os.environ.get("FIDOPT_SETTINGS") or "{}").get("preset")
    if not preset:
        sys.exit("impact_reg has no settings of its own: run one of its presets, impact_reg@PRESET")
    environment = Path(os.environ["FIDOPT_ENV"])
    device = os.environ["FIDOPT_DEVICE"]
    words = ["register", preset, "-f", fixed, "-m", moving, "-o", str(Path("Output").resolve())]
    for side in ("fixed", "moving"):
        mask = os.environ.get(f"FIDOPT_{side.upper()}_MASK")
        words += [f"--{side}-mask", mask] if mask else []
    words += (
        ["--gpu", device.partition(":")[2]] if device.startswith("cuda") else ["--cpu", os.environ["FIDOPT_THREADS"]]
    )
    local = environment / "presets"
    told = {**os.environ, "KONFAI_IMPACTREG_REPO": str(local.resolve())} if local.exists() else dict(os.environ)
    # The command starts konfai-apps, which lies beside it.
    told["PATH"] = f"{environment / 'bin'}:{told.get('PATH', '')}"
    subprocess.run([environment / "bin" / "impact-reg-konfai", *words], check=True, env=told)
    grid = sitk.ReadImage(fixed)
    field = sitk.TransformToDisplacementField(
        sitk.ReadTransform(str(Path("Output") / "P000" / "Transform.h5")),
        sitk.sitkVectorFloat32,
        grid.GetSize(),
        grid.GetOrigin(),
        grid.GetSpacing(),
        grid.GetDirection(),
    )
    sitk.WriteImage(field, out, useCompression=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
