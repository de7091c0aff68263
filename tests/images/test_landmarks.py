import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blocks.grid import Grid
from fidopt.errors import InputError
from fidopt.images.landmarks import check_frame, read_landmark_pair, read_landmarks, write_landmarks

THREE = [[1, 2, 3], [4, 5, 6]]
READ_RIGHT = {
    "d10_bom.csv": (b"\xef\xbb\xbf1,2,3\n4,5,6\n", THREE),
    "d10_crlf.csv": (b"1,2,3\r\n4,5,6\r\n", THREE),
    "d10_semicolon.csv": (b"1,5;2,5;3,5\n4;5;6\n", [[1.5, 2.5, 3.5], [4, 5, 6]]),
    "d10_one.csv": (b"1,2,3\n", [[1, 2, 3]]),
    "d10_header.csv": (b"x,y,z\n1,2,3\n", [[1, 2, 3]]),
    "d10_short.csv": (b"1,2,3\n", [[1, 2, 3]]),
    "d10_ras.csv": (b"-1,-2,3\n-4,-5,6\n", [[-1, -2, 3], [-4, -5, 6]]),
    "d10_fcsv.csv": (
        (
            b"# Markups fiducial file version = 4.11\n# CoordinateSystem = RAS\n"
            b"# columns = id,x,y,z,ow,ox,oy,oz,vis,sel,lock,label,desc,associatedNodeID\n"
            b"1,-1,-2,3,0,0,0,1,1,1,0,F-1,,\n"
        ),
        [[1, 2, 3]],
    ),
}


@pytest.mark.parametrize("name", READ_RIGHT)
def test_every_make_of_csv_is_read_as_n_points(tmp_path, name):
    content, expected = READ_RIGHT[name]
    (tmp_path / name).write_bytes(content)
    points = read_landmarks(tmp_path / name, ndim=3)
    assert points.dtype == np.float64
    assert points.shape == (len(expected), 3)
    assert points.tolist() == expected


@pytest.mark.parametrize("name", READ_RIGHT)
def test_the_shared_files_are_what_the_generated_ones_are(shared_case, name):
    assert read_landmarks(shared_case(name), ndim=3).tolist() == READ_RIGHT[name][1]


def test_a_gap_is_refused_with_its_line(tmp_path, shared_case):
    (tmp_path / "gap.csv").write_text("x,y,z\n1,2,3\n1,,3\n")
    with pytest.raises(InputError, match=r"gap\.csv: line 3: y must be a finite number, got ''"):
        read_landmarks(tmp_path / "gap.csv", ndim=3)
    with pytest.raises(InputError, match=r"d10_gap\.csv: line 1: y must"):
        read_landmarks(shared_case("d10_gap.csv"), ndim=3)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1,2,3\n\n4,5\n", "line 3: 3 coordinates are expected, got 2"),
        ("1,2,3,4\n", "line 1: 3 coordinates are expected, got 4"),
        ("1,2,nan\n", "line 1: z must be a finite number, got 'nan'"),
        ("1,2,three\n", "line 1: z must be a finite number, got 'three'"),
        ("x,y\n1,2\n", "3 coordinates are expected, its header names 2"),
        ("x,y,z\n", "there is no landmark"),
        ("", "there is no landmark"),
        ("point\n3\n1 2 3\n", "line 2: 3 points are announced, 1 follow"),
        ("index\n1\n1 2 3\n", "grid is needed"),
    ],
)
def test_a_file_that_cannot_be_read_right_is_refused(tmp_path, text, why):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(InputError, match=why):
        read_landmarks(tmp_path / "p.csv", ndim=3)


def test_an_fcsv_in_lps_is_not_flipped(tmp_path):
    header = "# Markups fiducial file version = 4.11\n# CoordinateSystem = LPS\n# columns = id,x,y,z,label\n"
    (tmp_path / "p.fcsv").write_text(header + "a,1,2,3,here\n")
    assert read_landmarks(tmp_path / "p.fcsv", ndim=3).tolist() == [[1, 2, 3]]


def test_columns_are_found_by_the_names_in_the_header(tmp_path):
    (tmp_path / "p.csv").write_text(",X,Y\n1,59,72\n2,122.5,108\n")
    assert read_landmarks(tmp_path / "p.csv", ndim=2).tolist() == [[59, 72], [122.5, 108]]


def test_elastix_points_and_indices_are_placed_in_the_world(tmp_path):
    (tmp_path / "p.txt").write_text("point\n2\n1.5 2 3\n4 5 6\n")
    assert read_landmarks(tmp_path / "p.txt", ndim=3).tolist() == [[1.5, 2, 3], [4, 5, 6]]
    (tmp_path / "i.txt").write_text("index\n1\n1 2 3\n")
    grid = Grid.of((9, 9, 9), spacing=(2, 3, 4), origin=(10, 20, 30))
    assert read_landmarks(tmp_path / "i.txt", ndim=3, grid=grid).tolist() == [[12, 26, 42]]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 3).flatmap(
        lambda ndim: st.lists(
            st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * ndim), min_size=1, max_size=5
        )
    )
)
def test_what_is_written_reads_back_to_the_same_bits(tmp_path_factory, points):
    path = tmp_path_factory.mktemp("points") / "p.csv"
    write_landmarks(path, points)
    read = read_landmarks(path, ndim=len(points[0]))
    # A negative zero is a zero.
    assert np.array_equal(read, np.array(points))
    assert path.read_text().startswith("x,y,z\n" if len(points[0]) == 3 else "x,y\n")


def test_points_that_are_not_points_are_not_written(tmp_path):
    for wrong in ([[1.0, np.nan]], [1.0, 2.0], np.zeros((2, 4))):
        with pytest.raises(InputError, match="landmarks are finite points"):
            write_landmarks(tmp_path / "p.csv", wrong)
    assert list(tmp_path.iterdir()) == []


def test_ras_points_are_named_and_never_flipped(tmp_path):
    grid = Grid.of((10, 10, 10), origin=(0, 0, 0))
    (tmp_path / "p.csv").write_text("-1,-2,3\n-4,-5,6\n")
    points = read_landmarks(tmp_path / "p.csv", ndim=3)
    assert points[0].tolist() == [-1, -2, 3]
    assert "2 of 2 points lie outside" in (check_frame(points, grid) or "")
    assert "RAS" in (check_frame(points, grid) or "")
    assert check_frame(-points * [1, 1, -1], grid) is None


def test_points_outside_either_way_are_not_called_ras():
    grid = Grid.of((10, 10, 10), origin=(0, 0, 0))
    assert check_frame([[50.0, 2.0, 3.0], [1.0, 2.0, 3.0]], grid) is None


def test_a_pair_with_unequal_counts_is_refused(tmp_path, shared_case):
    (tmp_path / "a.csv").write_text("1,2,3\n4,5,6\n")
    (tmp_path / "b.csv").write_text("1,2,3\n")
    with pytest.raises(InputError, match=r"a\.csv has 2 points and .*b\.csv has 1"):
        read_landmark_pair(tmp_path / "a.csv", tmp_path / "b.csv", ndim=3)
    with pytest.raises(InputError, match=r"has 2 points and .*d10_short\.csv has 1"):
        read_landmark_pair(shared_case("d10_crlf.csv"), shared_case("d10_short.csv"), ndim=3)


def test_the_lung_landmarks_are_read_as_elastix_wrote_them(shared_data):
    folder = shared_data("lung_ct")
    names = (folder / "baseline_landmarks.txt", folder / "followup_landmarks.txt")
    fixed, moving = read_landmark_pair(*names, ndim=3)
    assert fixed.shape == (100, 3)
    assert fixed[0].tolist() == [-36.351, -36.974, -1204.5]
    assert moving[0].tolist() == [-40.94, -47.022, -1169.5]
