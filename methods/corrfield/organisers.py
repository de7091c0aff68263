"""Call the Learn2Reg organisers' copy of corrField as their NLST baseline does, and write its displacements."""

import sys

import nibabel
import numpy as np
import torch


def loaded(path: str) -> torch.Tensor:
    """Return a volume (1, 1, x, y, z) on the GPU."""
    return torch.from_numpy(nibabel.load(path).get_fdata(dtype=np.float32))[None, None].cuda()


def main(source: str, fixed: str, moving: str, mask: str, out: str) -> None:
    """Register two volumes of one grid and write displacements in voxels (x, y, z, 3)."""
    sys.path.insert(0, source)
    from corrfield import corrfield

    settings = {"alpha": 2.5, "beta": 150, "gamma": 5, "delta": 1, "step": 3, "lambd": 0, "factor": 1}
    settings |= {"sigma": 1.4, "sigma1": 0.8, "symmetric": True, "L": [16, 8], "N": [6, 3], "Q": [2, 1], "R": [3, 2]}
    steps, _, _ = corrfield(loaded(fixed), loaded(mask), loaded(moving), T=["n", "n"], **settings)
    nibabel.save(nibabel.Nifti1Image(steps[0].cpu().numpy(), np.eye(4)), out)


if __name__ == "__main__":
    main(*sys.argv[1:6])
