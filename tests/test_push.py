"""Pushing to a Hub over real HTTP, unmodified clients: what arrives, what is refused, what a failure leaves."""

import copy
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from factories import make_episodes
from hub_client import Client
from hub_server import Fault, Hub, git_id
from test_publish import make_set

from pairgen.commands import push_
from pipelines.card import BEGIN, END
from pipelines.push import PushConfig

TOKEN, READER, STRANGER = "hf_SECRETsecretSECRET1", "hf_SECRETreader2", "hf_SECRETstranger3"
ROWS = """
import json, sys, datasets
repo, config, revision = sys.argv_asked
data = datasets.load_dataset(repo, config, revision=revision or None, cache_dir="cache")
print(json.dumps({side: [rows.column_names, rows.to_list()] for side, rows in data.items()}))
"""


@pytest.fixture(scope="module")
def server():
    hub = Hub()
    hub.account(TOKEN, "me", "lab")
    hub.account(READER, "me", role="read")
    hub.account(STRANGER, "you")
    yield hub
    hub.close()


@pytest.fixture(scope="module")
def client(server, tmp_path_factory):
    home = tmp_path_factory.mktemp("client")
    client = Client(server.url, home, {"HF_TOKEN": TOKEN, "OMP_NUM_THREADS": "1"})
    yield client
    client.close()
    said = [p for p in home.rglob("*") if p.is_file() and b"hf_SECRET" in p.read_bytes()]
    assert not said, f"the token is in {said}"


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Two sets: the second has one more strategy, and no test side."""
    folder = tmp_path_factory.mktemp("sets")
    make_set(folder / "one", make_episodes(tasks=4))
    make_set(folder / "two", make_episodes(["taboo"], tasks=1), strategies=("longer", "picky"))
    return folder


@pytest.fixture
def hub(server):
    server.reset()
    yield server
    assert not server.faults


@pytest.fixture(scope="module")
def pushed(server, client, sets):
    """The data set as a push of the first set leaves it."""
    server.reset()
    ended = client.call(sets, "push", "one", "me/games")
    assert ended.code == 0, ended.stderr
    return server.repo("me/games")


@pytest.fixture
def published(hub, pushed):
    """The Hub after that push, which is not made again; gives the head."""
    hub.repos["datasets/me/games"] = copy.deepcopy(pushed)
    return pushed.head


@pytest.fixture
def pairs(sets, tmp_path):
    """A folder with both sets to work in."""
    shutil.copytree(sets, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def push(client, pairs):
    def call(name, repo, *options, wait="30", **more):
        return client.call(pairs, "push", name, repo, "--wait", wait, *options, "--json", **more)

    return call


def loaded(client, folder, repo, config="default", revision=""):
    """What a stranger's load_dataset gives, as plain data."""
    code = ROWS.replace("sys.argv_asked", repr((repo, config, revision)))
    ended = client.call(folder, code=code)
    assert ended.code == 0, ended.stderr
    return {side: (names, rows) for side, (names, rows) in ended.summary.items()}


def local(folder, config="default"):
    tables = {path.stem: pq.read_table(path) for path in (folder / config).glob("*.parquet")}
    return {side: (table.column_names, table.to_pylist()) for side, table in tables.items()}


def tampered(hub, name, path, content):
    """Somebody changes a file of the data set behind our back."""
    repo = hub.repo(name)
    repo.commit("refs/heads/main", {**repo.files, path: content}, "by hand")
    return repo.head


# Round trips


def test_what_was_pushed_loads_as_it_is_here_and_is_what_the_dry_run_wrote(hub, push, client, pairs):
    dry = client.call(pairs, "push", "one", "me/games", "--dry-run")
    assert dry.code == 0 and "Nothing was sent" in dry.stdout and not hub.asked
    ended = push("one", "me/games", "--tag", "v1")
    assert ended.code == 0, ended.stderr
    repo, told = hub.repo("me/games"), ended.summary
    assert (told["url"], told["commit"]) == (f"{hub.url}/datasets/me/games", repo.head)
    assert (told["visibility"], told["verified"], told["changed"]) == ("private", True, True)
    assert len(repo.commits) == 2 and repo.refs["refs/tags/v1"] == repo.head
    written = {str(p.relative_to(pairs / "one.push")): p.read_bytes() for p in (pairs / "one.push").rglob("*.*")}
    assert {k: v for k, v in repo.files.items() if k != ".gitattributes"} == written
    for config in ("default", "full"):
        assert loaded(client, pairs, "me/games", config) == local(pairs / "one", config)
    assert "loading it back" in ended.stderr and not re.search(r"\d+%\|", ended.stderr)


def test_a_second_push_brings_other_rows_drops_stale_files_and_keeps_old_revisions(hub, published, push, client, pairs):
    ended = push("two", "me/games")
    assert ended.code == 0, ended.stderr
    assert ended.summary["deleted"] == ["default/test.parquet", "full/test.parquet"]
    assert loaded(client, pairs, "me/games", "full") == local(pairs / "two", "full")
    assert loaded(client, pairs, "me/games", "full", published) == local(pairs / "one", "full")
    strategies = {row["strategy"] for row in loaded(client, pairs, "me/games", "full")["train"][1]}
    assert strategies == {"longer", "picky"}


def test_a_push_of_the_same_makes_no_commit_and_still_compares(hub, published, push):
    head = published
    ended = push("one", "me/games", "--tag", "v1")
    assert ended.code == 0 and ended.summary["changed"] is False and ended.summary["commit"] == head
    assert hub.repo("me/games").head == head == hub.repo("me/games").refs["refs/tags/v1"]
    assert not [a for a in hub.asked if "/commit/" in a] and [a for a in hub.asked if "full/train.parquet" in a]


def test_an_organisation_a_branch_and_a_pull_request(hub, push, client, pairs):
    ended = push("one", "lab/games", "--public", "--branch", "next")
    assert ended.code == 0, ended.stderr
    repo = hub.repo("lab/games")
    assert ended.summary["url"] == f"{hub.url}/datasets/lab/games/tree/next" and not repo.private
    assert set(repo.files) == {".gitattributes"} and repo.refs["refs/heads/next"] == ended.summary["commit"]
    ended = push("two", "lab/games", "--pull-request", env={"HF_TOKEN": STRANGER})
    assert ended.code == 0, ended.stderr
    assert ended.summary["url"] == f"{hub.url}/datasets/lab/games/discussions/1"
    assert set(repo.files) == {".gitattributes"} and repo.refs["refs/pr/1"] == ended.summary["commit"]


def test_what_a_person_wrote_on_the_hubs_card_stays_with_its_line_endings(hub, published, push):
    card = hub.repo("me/games").files["README.md"].decode()
    mine = card.replace(BEGIN, "My first words, \u00e4.\n\n" + BEGIN).replace(END, END + "\n\nMy last words.")
    mine = mine.replace("license:", "pretty_name: Mine\nlicense:").replace("\n", "\r\n")
    tampered(hub, "me/games", "README.md", b"\xef\xbb\xbf" + mine.encode())
    tampered(hub, "me/games", "picture.png", b"png")
    assert push("two", "me/games").code == 0
    now = hub.repo("me/games").files["README.md"]
    text = now.decode()
    assert text.index("My first words, \u00e4.") < text.index(BEGIN) < text.index(END) < text.index("My last words.")
    assert "pretty_name: Mine\r\n" in text and "--strategy picky" in text
    assert now.count(b"\n") == now.count(b"\r\n") and "picture.png" in hub.repo("me/games").files


def test_a_login_is_as_good_as_the_variable(hub, pairs, tmp_path):
    saved = tmp_path / "token"
    saved.write_text(TOKEN + "\n")
    env = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    env |= {"HF_ENDPOINT": hub.url, "HF_TOKEN_PATH": str(saved), "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "pairgen.cli", "push", "one", "me/games"]
    done = subprocess.run(command, cwd=pairs, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{hub.url}/datasets/me/games (private, revision" in done.stdout and TOKEN not in done.stdout + done.stderr


def test_a_dry_run_needs_no_token_and_no_network(pairs, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{taken.getsockname()[1]}"
        env = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
        env |= {"HF_ENDPOINT": closed, "HF_HOME": str(tmp_path / "nobody")}
        command = [sys.executable, "-m", "pairgen.cli", "push", "one", "me/games", "--dry-run", "--tag", "v1"]
        done = subprocess.run(command, cwd=pairs, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        real = subprocess.run(command[:-3], cwd=pairs, env=env, capture_output=True, text=True, check=False)
    assert (pairs / "one.push/full/train.parquet").read_bytes() == (pairs / "one/full/train.parquet").read_bytes()
    assert real.returncode == 1 and "hf auth login" in real.stderr and len(real.stderr.splitlines()) == 1


# Refusals


def refused(ended, *says, code=2):
    """One sentence on standard error, and nothing else but what a wait says."""
    lines = [line for line in ended.stderr.splitlines() if line.startswith("pairgen: ")]
    assert ended.code == code and len(lines) == 1, ended.stderr
    assert "Traceback" not in ended.stderr and "hf_SECRET" not in ended.stderr
    for text in says:
        assert text in lines[0]


@pytest.mark.parametrize(
    ("token", "repo", "says", "code"),
    [
        ("", "me/games", ("hf auth login", "HF_TOKEN"), 1),
        ("hf_SECRETwrong", "me/games", ("does not take this token",), 1),
        ("hf_SECRET\x7fodd", "me/games", ("token",), 1),
        (READER, "me/games", ("may only read", "/settings/tokens"), 1),
        (STRANGER, "me/games", ("is of you, who is not me", "you/games"), 2),
        (TOKEN, "us/games", ("me/games or one of its organisations (lab)",), 2),
    ],
)
def test_a_token_that_does_not_do_is_told_first(hub, push, token, repo, says, code):
    refused(push("one", repo, env={"HF_TOKEN": token, "HF_HUB_DISABLE_IMPLICIT_TOKEN": ""}), *says, code=code)
    assert not hub.repos and not [a for a in hub.asked if a.startswith("POST")]


def test_another_visibility_than_was_said_is_refused(hub, push):
    for private in (True, False):
        head = hub.add_repo("me/games", private=private).head
        refused(push("one", "me/games", *(["--public"] if private else [])), f"{hub.url}/datasets/me/games/settings")
        assert hub.repo("me/games").head == head


def test_files_of_others_are_named_and_go_only_with_force(hub, push):
    files = {"rows.csv": b"a,b\n", "default/train-0001.parquet": b"x", "LICENSE": b"mine", ".huggingface.yaml": b""}
    head = hub.add_repo("me/games", private=True, files=files).head
    said = ".huggingface.yaml, default/train-0001.parquet, rows.csv"
    refused(push("one", "me/games"), f"--force, which would delete {said}")
    assert hub.repo("me/games").head == head
    ended = push("one", "me/games", "--force")
    assert ended.code == 0 and f"--force: will delete {said}" in ended.stderr
    assert ended.summary["deleted"] == ended.summary["replaced"] == said.split(", ")
    repo = hub.repo("me/games")
    assert "LICENSE" in repo.files and not set(said.split(", ")) & set(repo.files)
    assert repo.commits[repo.head].parent == head


def test_a_data_set_of_other_making_or_other_columns_is_refused(hub, published, push, pairs):
    table = pq.read_table(pairs / "one/full/train.parquet").drop_columns(["detail"])
    odd = pa.BufferOutputStream()
    pq.write_table(table, odd)
    odd = odd.getvalue().to_pybytes()
    hub.add_repo("me/other", private=True, files={"full/train.parquet": odd})
    refused(push("one", "me/other"), "replace full/train.parquet (no manifest of pairgen's")
    assert push("one", "me/other", "--force").code == 0
    head = tampered(hub, "me/games", "full/train.parquet", odd)
    refused(push("one", "me/games"), "replace full/train.parquet (other columns: detail)")
    assert hub.repo("me/games").head == head


def test_a_tag_that_is_there_is_refused_before_anything_is_sent(hub, push):
    repo = hub.add_repo("me/games", private=True)
    repo.refs["refs/tags/v1"] = repo.head
    refused(push("one", "me/games", "--tag", "v1"), "hf repos tag delete me/games v1 --type dataset")
    assert not [a for a in hub.asked if a.startswith(("POST", "PUT"))]


@pytest.mark.parametrize("options", [("--branch", "x"), ("--tag", "v1")])
def test_a_pull_request_has_no_branch_and_no_tag(hub, push, options):
    refused(push("one", "me/games", "--pull-request", *options), "--pull-request goes with neither")
    assert not hub.asked


# Failures


BUSY = {"Retry-After": "1"}


def test_a_busy_hub_is_waited_for_as_it_says(hub, push):
    faults = [
        Fault("GET", "whoami", 429, BUSY),
        Fault("POST", "repos/create", 503),
        Fault("POST", "preupload", 429, BUSY),
        Fault("POST", "objects/batch", 500),
        Fault("PUT", "storage", cut=1),
        Fault("POST", "/commit/", 500),
        Fault("HEAD", "resolve/.*README", 429, BUSY),
        Fault("POST", "/tag/", 502),
    ]
    with hub.failing(*faults):
        ended = push("one", "me/games", "--tag", "v1")
    assert ended.code == 0, ended.stderr
    assert not [f.path for f in faults if f.times] and len(hub.repo("me/games").commits) == 2
    assert "too many requests (429); trying again in 1 s" in ended.stderr
    assert "the commit: the server answered 500; trying again in" in ended.stderr


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Fault("POST", "/commit/", 500, times=-1), "did not serve the commit: the server answered 500"),
        (Fault("POST", "/commit/", 429, {"Retry-After": "600"}, times=-1), "too many requests (429); push again later"),
        (Fault("POST", "/commit/", cut=1, times=-1), "did not serve the commit: not reached"),
        (Fault("PUT", "storage", 403, times=-1), "refused the commit (403): use a token"),
        (Fault("POST", "preupload", 403, times=-1), "refused the commit (403)"),
    ],
)
def test_a_push_that_fails_leaves_the_old_revision(hub, published, push, client, pairs, fault, says):
    head = published
    with hub.failing(fault):
        refused(push("two", "me/games", wait="0.5"), says, code=1)
    assert hub.repo("me/games").head == head and len(hub.repo("me/games").commits) == 2
    if fault.path == "storage":
        assert loaded(client, pairs, "me/games") == local(pairs / "one")


def test_an_upload_whose_connection_is_always_cut_ends(hub, client, pairs):
    """huggingface_hub tries each file six times by itself, over half a minute: so its waits are made short here."""
    hub.add_repo("me/games", private=True)
    code = (
        "import time, sys; sleep = time.sleep; time.sleep = lambda s: sleep(s / 50)\n"
        "from pairgen.cli import main; main(['push', 'one', 'me/games', '--wait', '2'])"
    )
    fault = Fault("PUT", "storage", cut=1, times=-1)
    with hub.failing(fault):
        refused(client.call(pairs, code=code), "did not serve the commit: not reached", code=1)
    assert len(hub.repo("me/games").commits) == 1


def test_a_new_data_set_that_stays_empty_is_named(hub, push):
    with hub.failing(Fault("POST", "/commit/", 403, times=-1)):
        refused(push("one", "me/games"), "refused the commit", "created by this push, without data", code=1)
    assert set(hub.repo("me/games").files) == {".gitattributes"}
    assert push("one", "me/games").code == 0


def test_an_answer_that_is_lost_gives_no_second_commit(hub, push):
    for fault in (Fault("POST", "/commit/", cut=2), Fault("POST", "/commit/", 500, after=True)):
        hub.reset()
        with hub.failing(fault):
            ended = push("one", "me/games")
        assert ended.code == 0, ended.stderr
        assert len(hub.repo("me/games").commits) == 2 and ended.summary["commit"] == hub.repo("me/games").head


def test_a_change_by_somebody_else_meanwhile_is_kept(hub, published, push):
    with hub.failing(Fault("POST", "/commit/", do=lambda: tampered(hub, "me/games", "notes.md", b"theirs"))):
        refused(push("two", "me/games"), "changed by somebody else", "push again", code=1)
    assert hub.repo("me/games").files["notes.md"] == b"theirs"
    assert push("two", "me/games").code == 0 and hub.repo("me/games").files["notes.md"] == b"theirs"


def test_a_push_that_is_killed_leaves_the_old_revision(hub, published, client, pairs):
    head, held, killed = published, threading.Event(), threading.Event()

    def hold():
        held.set()
        killed.wait(20)

    for number in (signal.SIGKILL, signal.SIGINT):
        held.clear()
        killed.clear()
        with hub.failing(Fault("PUT", "storage", do=hold, cut=1)):
            process, place = client.start(pairs, "push", "two", "me/games")
            assert held.wait(20)
            os.kill(process, number)
            time.sleep(0.3)
            killed.set()
            ended = client.end(place)
        assert ended.code != 0 and hub.repo("me/games").head == head


def test_what_does_not_load_as_the_folder_does_is_told(hub, published, push, pairs):
    """The Hub damages what it was sent: the same rows in another order."""
    good = published
    table = pq.read_table(pairs / "two/default/train.parquet")
    path = pairs / "damaged.parquet"
    pq.write_table(table.take(list(reversed(range(len(table))))), path)

    def damage():
        commit = hub.repo("me/games").commits[hub.repo("me/games").head]
        commit.files["default/train.parquet"] = path.read_bytes()

    with hub.failing(Fault("HEAD", r"resolve/.*/\.huggingface\.yaml", do=damage)):
        ended = push("two", "me/games", "--tag", "v1")
    refused(ended, "default/train.parquet has other contents in its", good, code=1)
    assert "refs/tags/v1" not in hub.repo("me/games").refs
    with hub.failing(Fault("HEAD", "resolve/.*default/train", 404, times=-1)):
        refused(push("two", "me/games"), "could not be loaded back", "push again", code=1)


def test_offline_and_a_hub_without_xet_name_the_variable(hub, pairs, tmp_path):
    """huggingface_hub 0.34 finds out by itself that there is no Xet storage; 1.x does not."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    env |= {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HOME": str(tmp_path / "h")}
    command = [sys.executable, "-m", "pairgen.cli", "push", "one", "me/games", "--wait", "1"]
    for more, says in (({"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE is set"), ({}, "set HF_HUB_DISABLE_XET=1")):
        done = subprocess.run(command, cwd=pairs, env=env | more, capture_output=True, text=True, check=False)
        by_itself = not more and "full/train.parquet" in hub.repo("me/games").files
        assert done.returncode == (0 if by_itself else 1) and TOKEN not in done.stderr, done.stderr
        assert by_itself or says in done.stderr


def test_nothing_that_was_sent_or_kept_holds_the_token(hub, push, client, pairs):
    before = {p for p in client.home.rglob("*") if p.is_file()}
    assert push("one", "me/games").code == 0
    for path, content in hub.repo("me/games").files.items():
        assert b"hf_SECRET" not in content, path
    left = {p for p in client.home.rglob("*") if p.is_file() and not p.name.startswith("said-")} - before
    assert not left, "the load back leaves nothing"
    assert not [p for p in Path(pairs).rglob("*") if p.is_file() and b"hf_SECRET" in p.read_bytes()]


def test_options_and_configuration_have_the_same_names():
    options = {p.name for p in push_.command.params if isinstance(p, click.Option)}
    assert options - set(PushConfig.__dataclass_fields__) == {"dry_run", "out", "overwrite", "as_json"}
    assert set(PushConfig.__dataclass_fields__) <= options
    defaults = push_.command.make_context("push", ["pairs", "me/games"]).params
    assert all(getattr(PushConfig(), name) == defaults[name] for name in PushConfig.__dataclass_fields__)


def test_the_test_hub_names_contents_as_git_does():
    assert git_id(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"
    assert json.dumps(git_id(b"")) == '"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"'
