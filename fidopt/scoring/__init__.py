"""From what was made of a case to its row: a field, a label map or an image read or refused, and measured by KonfAI.

:mod:`fidopt.scoring.field` reads a field or refuses it; :mod:`fidopt.scoring.plan` fills the blocks of
``evaluation/<task>.yml``; :mod:`fidopt.scoring.levels` says which level of a large image is compared;
:mod:`fidopt.scoring.regularity` adds a field of any size up; :mod:`fidopt.scoring.staging` lays out what is compared;
:mod:`fidopt.scoring.evaluator` runs KonfAI, which calls :mod:`fidopt.scoring.criteria`;
:mod:`fidopt.scoring.evaluation` does all of it for one case, :mod:`fidopt.scoring.submission` for a folder of fields.

Of the other tasks, :mod:`fidopt.scoring.outputs` reads a label map or an image, whose names meet the dataset's in
:mod:`fidopt.scoring.structures`; KonfAI calls :mod:`fidopt.scoring.structure_criteria` or
:mod:`fidopt.scoring.image_criteria`; :mod:`fidopt.scoring.anatomy` has a segmentation method look at a synthesis;
:mod:`fidopt.scoring.output_evaluation` scores one case, :mod:`fidopt.scoring.output_submission` a folder.
"""
