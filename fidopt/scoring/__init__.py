"""From a displacement field and a case to its row: the field read or refused, staged, and measured by KonfAI.

:mod:`fidopt.scoring.field` reads a field or refuses it; :mod:`fidopt.scoring.plan` fills the blocks of
``evaluation/registration.yml``; :mod:`fidopt.scoring.levels` says which level of a large image is compared;
:mod:`fidopt.scoring.regularity` adds a field of any size up; :mod:`fidopt.scoring.staging` lays out what is compared;
:mod:`fidopt.scoring.evaluator` runs KonfAI, which calls :mod:`fidopt.scoring.criteria`;
:mod:`fidopt.scoring.evaluation` does all of it for one case, :mod:`fidopt.scoring.submission` for a folder of fields.
"""
