"""A report says what the manifest and the rows say, for every pair and episode, and leaves the folder as it is."""

import json
import re

import pytest
from click.testing import CliRunner
from factories import make_episode, make_episodes, make_move, make_pair, write_pairs, write_run
from test_refine import refined, some
from test_tokens import Words

from pairgen.cli import main
from pairgen.records import Player
from pipelines import report, report_run
from pipelines.funnel import meaning

ENDED = [make_episode(1), make_episode(2, outcome="aborted", main_score=None)]


def pairs(count=12, **fields):
    return [make_pair(n, split="test" if n % 4 == 0 else "train", **fields) for n in range(count)]


def run(*arguments):
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def head_of(text):
    return json.loads(re.search(r'<script type="application/json" id="head">(.*?)</script>', text)[1])


def words(text):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def snapshot(folder):
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.rglob("*") if p.is_file()}


def test_the_report_on_a_set_is_written_beside_it_and_leaves_it_alone(tmp_path):
    folder = write_pairs(tmp_path / "pairs", pairs(), make_episodes())
    before = snapshot(folder)
    done = run(folder, "--json")
    assert done.exit_code == 0, done.output
    out = tmp_path / "pairs.report.html"
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["kind"], summary["rows"], summary["out"]) == ("pairs", 12, str(out))
    assert summary["size"] == out.stat().st_size
    assert snapshot(folder) == before and {p.name for p in tmp_path.iterdir()} == {"pairs", "pairs.report.html"}
    text = out.read_text()
    assert head_of(text)["rows"] == 12 and head_of(text)["kind"] == "pairs"
    again = run(folder)
    assert (again.exit_code, "--overwrite" in again.output) == (2, True)
    assert run(folder, "--overwrite").exit_code == 0 and out.read_text() == text


def test_the_overview_has_funnel_scores_verdicts_and_command(tmp_path):
    some_pairs = [
        *pairs(8),
        *(make_pair(n, game="wordle", split="train", rejected_verdict="accepted") for n in range(4)),
    ]
    folder = write_pairs(tmp_path / "pairs", some_pairs, ENDED)
    report.write_report(folder, tmp_path / "r.html")
    text = words((tmp_path / "r.html").read_text())
    for told in (meaning("outcome_lose"), "outcome_lose", "clemscore 50.00", "66.7% of judged rejected sides",
                 "pairgen corrupt", "taboo longer 8 0 0 0 8 0",
                 "wordle longer 4 0 0 4 0 0", "Tokens were not counted"):  # fmt: skip
        assert told in text, told


def test_tokens_are_drawn_against_max_length_where_they_were_counted(tmp_path):
    made = refined(some(tasks=10), tokenizer=Words(), max_length=40)
    assert sum(b.pairs for b in made.quality.tokens.totals) == len(made.train) + len(made.test)
    folder = write_pairs(tmp_path / "pairs", [*made.train, *made.test], quality=made.quality)
    report.write_report(folder, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert 'id="chart-tokens"' in text and "max_length 40" in text and "Tokens were not counted" not in text
    assert 'id="chart-audit"' in text


def test_a_set_of_an_older_release_says_what_its_manifest_lacks(tmp_path):
    folder = write_pairs(tmp_path / "pairs", pairs(), make_episodes())
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["played"]
    path.write_text(json.dumps(manifest))
    report.write_report(folder, tmp_path / "r.html")
    assert "has no scores by game" in (tmp_path / "r.html").read_text()


def test_the_report_on_a_run_has_outcomes_tokens_and_faults(tmp_path):
    episodes = [
        make_episode(1, moves=2), make_episode(2, outcome="error", main_score=None),
        make_episode(3, outcome="aborted", main_score=None, moves=[make_move(0, violation="no tag"), make_move(1)]),
    ]  # fmt: skip
    folder = write_run(tmp_path / "run", episodes)
    before = snapshot(folder)
    done = run(folder, "--out", tmp_path / "r.html", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout.splitlines()[-1])["kind"] == "episodes"
    assert snapshot(folder) == before
    page = (tmp_path / "r.html").read_text()
    text = words(page)
    assert "game_error 1 it broke" in text and "taboo 10 70 0 40 4.0" in text and "clemscore 50.00" in text
    assert "taboo 1" in text.split("did not accept")[1]
    assert head_of(page)["rows"] == 3 and "/models/tiny" not in page


def test_imported_episodes_say_that_they_know_no_tokens(tmp_path):
    moves = [make_move(0, prompt_tokens=-1, completion_tokens=-1, cached_tokens=-1)]
    report_run.write_report(write_run(tmp_path / "run", [make_episode(moves=moves)]), tmp_path / "r.html")
    assert "do not say how many tokens" in (tmp_path / "r.html").read_text()


def test_a_row_has_a_value_for_each_field(tmp_path):
    from io import BytesIO

    from pipelines.blocks import Blocks

    blocks = Blocks(BytesIO())
    assert len(report.row_of(make_pair(), blocks)) == len(report.FIELDS)
    seats = (Player("GM", "GM", "programmatic"),)
    assert len(report_run.row_of(make_episode(players=seats), blocks)) == len(report_run.FIELDS)
    for module in (report, report_run):
        assert {field for field, _ in module.FILTERS} <= set(module.FIELDS)


@pytest.mark.parametrize("kind", ["nothing", "empty folder", "run without episodes", "set without pairs"])
def test_what_is_neither_set_nor_run_is_refused_with_the_fix(tmp_path, kind):
    folder = tmp_path / "x"
    if kind == "empty folder":
        folder.mkdir()
    elif kind == "run without episodes":
        write_run(folder, [])
    elif kind == "set without pairs":
        write_pairs(folder, [])
    done = run(folder)
    assert done.exit_code in (1, 2) and re.search(r"pairgen (corrupt|rollout)", done.output), done.output
    assert not (tmp_path / "x.report.html").exists()


def test_a_report_inside_of_the_set_is_refused(tmp_path):
    folder = write_pairs(tmp_path / "pairs", pairs())
    done = run(folder, "--out", folder / "report.html")
    assert (done.exit_code, "another --out" in done.output) == (2, True)
