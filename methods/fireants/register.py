"""Register a pair by FireANTs' greedy registration as its tutorial calls it, and write the field as for ANTs."""

import os
import sys

import torch
from fireants.io import BatchedImages, Image
from fireants.registration.greedy import GreedyRegistration


def main(fixed_path: str, moving_path: str, out: str) -> None:
    """Register two files and write the field on the fixed image's grid."""
    torch.set_num_threads(int(os.environ["FIDOPT_THREADS"]))
    torch.manual_seed(int(os.environ["FIDOPT_SEED"]))
    device = os.environ["FIDOPT_DEVICE"]
    fixed, moving = (BatchedImages([Image.load_file(path, device=device)]) for path in (fixed_path, moving_path))
    registration = GreedyRegistration(
        scales=[4, 2, 1],
        iterations=[200, 100, 25],
        fixed_images=fixed,
        moving_images=moving,
        cc_kernel_size=5,
        deformation_type="compositive",
        smooth_grad_sigma=1,
        optimizer="adam",
        optimizer_lr=0.5,
    )
    registration.optimize()
    registration.save_as_ants_transforms(out)


if __name__ == "__main__":
    main(*sys.argv[1:4])
