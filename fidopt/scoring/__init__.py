"""From a displacement field and a case to its row: the field read or refused, staged, and measured by KonfAI.

:mod:`fidopt.scoring.field` reads a field or refuses it; :mod:`fidopt.scoring.plan` fills the blocks of
``evaluation/registration.yml``; :mod:`fidopt.scoring.staging` lays out what they compare;
:mod:`fidopt.scoring.evaluator` runs KonfAI, which calls :mod:`fidopt.scoring.criteria`;
:mod:`fidopt.scoring.evaluation` does all of it for one case, :mod:`fidopt.scoring.submission` for a folder of fields.
"""
