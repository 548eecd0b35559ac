"""Pictures made of letters."""

from caveat.demo.letters import Band, band_lines, bar

WIDE, NARROW = Band("1990", 0.0, 29.5, 59.0, 40.0), Band("1991", 10.0, 20.0, 30.0, 5.0)


def test_bands_stand_on_one_scale() -> None:
    lines = band_lines([WIDE, NARROW], note=lambda band: "")
    wide, narrow = (line[8:68] for line in lines)
    assert [wide.index(c) for c in "(ox)"] == [0, 30, 40, 59]
    assert [narrow.index(c) for c in "x(o)"] == [5, 10, 20, 30]


def test_lines_have_their_name_and_note_in_80_columns() -> None:
    for line in band_lines([WIDE, NARROW], note=lambda b: f"± {b.upper:.1f}"):
        assert line.startswith(("  1990", "  1991")) and "±" in line
        assert len(line) <= 80


def test_a_band_without_width() -> None:
    (line,) = band_lines([Band("x", 1.0, 1.0, 1.0, 1.0)], note=lambda b: "")
    assert line[8] == "x"


def test_a_bar_is_as_long_as_its_share() -> None:
    assert [bar(v) for v in (0.0, 0.5, 1.0)] == ["", "#" * 10, "#" * 20]
