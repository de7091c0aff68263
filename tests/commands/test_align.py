"""``fidopt align`` as a person calls it."""

import json

import pytest

from fidopt import resources
from fidopt.alignment import choice
from fidopt.alignment.elastix import Registered
from fidopt.alignment.motions import Motion
from fidopt.cli import main
from tests.corpus.conftest import make, pair  # noqa: F401 - fixtures


@pytest.fixture
def words(make, pair, monkeypatch):  # noqa: F811 - fixtures
    """Return the words that name a dataset of two cases, where elastix finds what it started from."""

    def register(fixed, moving, starts, *, kind):
        return [Registered(start, Motion(start.translation)) for start in starts], "9.9 (test)"

    monkeypatch.setattr(choice, "register", register)
    truth = {"grade": "expert", "by": "t", "checked": "t", "limits": "t", "labels": {"3": "x"}}
    _, roots = make(pair, alignment={"mode": "elastix-translation"}, truth=truth)
    return ["tiny", "--share", str(roots.share[0]), "--archives", str(roots.archives)]


def test_the_transforms_are_stored_beside_how_they_were_found(words, capsys, tmp_path):
    assert main(["align", *words]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("tiny/one: aligned; elastix-translation by elastix 9.9 (test): from ")
    folder = tmp_path / "share" / "datasets" / "tiny" / "alignment"
    assert sorted(path.name for path in folder.iterdir()) == ["one.json", "one.tfm", "two.json", "two.tfm"]
    assert main(["align", *words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [case["done"] for case in document["cases"]] == ["kept", "kept"]
    assert document["cases"][0]["elastix"] == "9.9 (test)"


def test_another_mode_than_the_dataset_s_is_made_and_said(words, capsys):
    assert main(["align", *words, "--mode", "image-centres"]) == 0
    captured = capsys.readouterr()
    assert "dataset.json says elastix-translation: fidopt build uses these once" in captured.err
    assert main(["align", *words]) == 2
    assert "--overwrite" in capsys.readouterr().err


def test_the_modes_are_tried_and_the_least_that_works_is_told(words, capsys, tmp_path):
    assert main(["align", *words, "--suggest", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    modes = [row["mode"] for row in document["cases"]["one"]]
    assert modes == ["as-delivered", "image-centres", "elastix-translation", "elastix-rigid"]
    assert max(row["share"] for row in document["cases"]["one"]) == 1.0
    assert main(["align", *words, "--suggest"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"the least mode that reaches 90% of the best score on every case is {document['least']}" in said
    assert not (tmp_path / "share" / "datasets" / "tiny" / "alignment").exists()


def test_the_installed_package_is_not_written(words, monkeypatch, capsys, tmp_path):
    packaged = tmp_path / "site-packages" / "fidopt" / "_share"
    packaged.parent.mkdir(parents=True)
    (tmp_path / "share").rename(packaged)
    for module in ("fidopt.resources", "fidopt.building.aligning"):
        monkeypatch.setattr(f"{module}.packaged_share", lambda: packaged)
    assert main(["align", "tiny", "--archives", words[-1]]) == 2
    assert "part of the installed package and is not written; name your own folder with --share" in (
        capsys.readouterr().err
    )
    assert resources.packaged_share() == packaged


def test_a_mode_beside_the_trial_of_all_is_refused(words, capsys):
    assert main(["align", *words, "--suggest", "--mode", "elastix-rigid"]) == 2
    assert "leave out --mode elastix-rigid" in capsys.readouterr().err


def test_what_is_not_filled_yet_is_refused(capsys):
    assert main(["align", "AFIDs"]) == 2
    assert "is described and not filled yet" in capsys.readouterr().err


def test_a_mode_that_is_still_open_is_tried_or_named_and_not_taken_from_the_descriptor(words, capsys, tmp_path):
    path = tmp_path / "share" / "datasets" / "tiny" / "dataset.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document |= {"to_fill": ["alignment.mode", "spdx", "truth.grade"], "spdx": "LicenseRef-to-fill"}
    path.write_text(json.dumps(document), encoding="utf-8")
    assert main(["align", *words]) == 2
    assert "leaves open alignment.mode;" in capsys.readouterr().err
    assert main(["align", *words, "--mode", "image-centres"]) == 0
    assert main(["align", *words, "--suggest", "--json"]) == 0


def test_a_legacy_mode_and_one_that_nobody_filled_in_are_named_and_not_called_as_delivered(words, capsys, tmp_path):
    path = tmp_path / "share" / "datasets" / "tiny" / "dataset.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    legacy = {"transform": "rigid", "from": "the landmark pairs, by least squares"}
    document["alignment"] = {"mode": "as-delivered", "legacy": legacy}
    path.write_text(json.dumps(document), encoding="utf-8")
    named = "legacy (rigid, from the landmark pairs, by least squares)"
    assert main(["align", *words, "--suggest"]) == 0
    assert f"dataset.json says {named}: change alignment.mode there" in " ".join(capsys.readouterr().out.split())
    assert main(["align", *words]) == 2
    assert f"tiny is aligned by {named}, which is computed no more; what would do: --suggest" in capsys.readouterr().err
    document["alignment"] = {"mode": "as-delivered"}
    path.write_text(json.dumps(document | {"to_fill": ["alignment.mode"]}), encoding="utf-8")
    assert main(["align", *words, "--suggest", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["now"] == "as-delivered, a first guess that is to be filled in (to_fill)"
    assert said["mode"] == "as-delivered"


def test_where_each_mode_fails_on_a_case_none_is_called_the_least(words, capsys, monkeypatch):
    monkeypatch.setattr(choice.Tried, "works", property(lambda one: one.share == 1.0))
    shares = iter([(1.0, 0.5, 0.4, 0.3), (0.5, 0.5, 1.0, 0.7)])

    def ladder(fixed, moving, *, modalities):
        modes = zip(choice.LADDER, next(shares), strict=True)
        return tuple(choice.Tried(choice.Found(mode, Motion((0.0,) * 3), None, (), mode), s, 0.0) for mode, s in modes)

    monkeypatch.setattr("fidopt.building.aligning.ladder", ladder)
    assert main(["align", *words, "--suggest"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "tiny: no mode reaches 90% of the best score on every case; dataset.json says elastix-translation:" in said
    assert "choose by the table, and say why in alignment.note there" in said
    assert "tiny: elastix-translation is not enough: 40% of the best score on one" in said
    assert "tiny: elastix-rigid is not enough: 30% of the best score on one" in said
