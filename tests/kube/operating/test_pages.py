"""Pages that are made from the code say what the code says."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from optimus.cli.main import app

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "security.md"


def test_the_table_of_rights_is_that_of_the_command() -> None:
    told = CliRunner().invoke(app, ["rights"])
    table = PAGE.read_text().partition("<!-- rights:start -->\n")[2].partition("<!-- rights:end -->")[0]
    assert table == told.output, "put the output of `optimus rights` there"
