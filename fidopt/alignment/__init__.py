"""One rigid motion a pair, found from the images alone and applied in the headers alone.

Images are averaged (:mod:`fidopt.alignment.averaging`), their bodies shaped (:mod:`fidopt.alignment.bodies`), starts
made of both (:mod:`fidopt.alignment.starts`), elastix run from each in a process of its own
(:mod:`fidopt.alignment.elastix`), and the transform kept that puts the pair together best
(:mod:`fidopt.alignment.scores`, :mod:`fidopt.alignment.choice`). What was stored is applied by
:mod:`fidopt.alignment.headers`. Nothing here is told of a truth.
"""
