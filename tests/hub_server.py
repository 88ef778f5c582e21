"""A small Hub over real HTTP: what the unmodified clients huggingface_hub and datasets ask for, and ways to misbehave.

Keeps every commit, so old revisions load. Stands for the Hub without Xet; the clients need HF_HUB_DISABLE_XET=1.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

GITATTRIBUTES = b"*.parquet filter=lfs diff=lfs merge=lfs -text\n*.safetensors filter=lfs diff=lfs merge=lfs -text\n"
LARGE = (".parquet", ".safetensors")


@dataclass
class Commit:
    oid: str
    parent: str
    files: dict[str, bytes]
    summary: str


@dataclass
class Repo:
    """One repository. `refs` maps a branch (`refs/heads/x`), tag or pull request (`refs/pr/1`) to a commit."""

    name: str
    kind: str
    private: bool
    commits: dict[str, Commit] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)

    def resolve(self, revision: str) -> str | None:
        places = (f"refs/heads/{revision}", f"refs/tags/{revision}", revision)
        return next((self.refs[p] for p in places if p in self.refs), revision if revision in self.commits else None)

    def commit(self, ref: str, files: dict[str, bytes], summary: str) -> str:
        parent = self.refs.get(ref, "")
        oid = hashlib.sha1(f"{self.name} {len(self.commits)} {parent} {summary}".encode()).hexdigest()
        self.commits[oid] = Commit(oid, parent, files, summary)
        self.refs[ref] = oid
        return oid

    @property
    def head(self) -> str:
        return self.refs["refs/heads/main"]

    @property
    def files(self) -> dict[str, bytes]:
        return self.commits[self.head].files


@dataclass
class Fault:
    """What goes wrong with requests of this method whose path matches, `times` times (-1: always).

    `status` is answered instead; with `after`, the work is done first. `cut` closes the connection: 1 after a part of
    the body was read, 2 in place of the answer once the work is done. `do` is called first.
    """

    method: str
    path: str
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1
    after: bool = False
    cut: int = 0
    do: Callable[[], object] | None = None


class Hub:
    """The server and what it holds."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.blobs: dict[str, bytes] = {}
        self.accounts: dict[str, dict[str, object]] = {}
        self.faults: list[Fault] = []
        self.asked: list[str] = []
        self.lock = threading.RLock()
        hub = self

        class Handler(_Handler):
            pass

        Handler.hub = hub
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def reset(self) -> None:
        self.repos, self.blobs, self.faults, self.asked = {}, {}, [], []

    def account(self, token: str, name: str, *orgs: str, role: str = "write") -> str:
        self.accounts[token] = {"name": name, "orgs": list(orgs), "role": role}
        return token

    def add_repo(
        self, name: str, *, private: bool, kind: str = "datasets", files: dict[str, bytes] | None = None
    ) -> Repo:
        repo = self.repos[f"{kind}/{name}"] = Repo(name, kind, private)
        repo.commit("refs/heads/main", {".gitattributes": GITATTRIBUTES}, "initial commit")
        if files:
            repo.commit("refs/heads/main", {**repo.files, **files}, "by hand")
        return repo

    def repo(self, name: str) -> Repo:
        return self.repos[f"datasets/{name}"]

    @contextlib.contextmanager
    def failing(self, *faults: Fault) -> Iterator[None]:
        self.faults = list(faults)
        try:
            yield
        finally:
            self.faults = []


def git_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def is_large(path: str) -> bool:
    return path.endswith(LARGE)


class Answer(Exception):
    """Ends a request with this status, body (JSON unless bytes) and these headers."""

    def __init__(self, status: int, body: object = None, **headers: str):
        self.status, self.body = status, body
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class _Cut(Exception):
    pass


NAME = r"(?P<kind>datasets|models)/(?P<name>[^/]+/[^/]+?)"
ROUTES: list[tuple[str, str, str]] = [
    ("GET", r"/api/whoami-v2", "whoami"),
    ("POST", r"/api/repos/create", "create"),
    ("POST", r"/api/validate-yaml", "validate"),
    ("POST", rf"/api/{NAME}/preupload/(?P<rev>[^/]+)", "preupload"),
    ("POST", r"/(?:(?P<kind>datasets)/)?(?P<name>[^/]+/[^/]+?)\.git/info/lfs/objects/batch", "batch"),
    ("PUT", r"/storage/(?P<oid>[0-9a-f]{64})", "store"),
    ("POST", r"/storage/(?P<oid>[0-9a-f]{64})/verify", "verify"),
    ("GET", r"/storage/(?P<oid>[0-9a-f]{64})", "fetch"),
    ("POST", rf"/api/{NAME}/commit/(?P<rev>[^/]+)", "commit"),
    ("GET", rf"/api/{NAME}/refs", "refs"),
    ("POST", rf"/api/{NAME}/branch/(?P<branch>[^/]+)", "branch"),
    ("POST", rf"/api/{NAME}/tag/(?P<rev>[^/]+)", "tag"),
    ("GET", rf"/api/{NAME}/tree/(?P<rev>[^/]+)(?:/(?P<path>.+))?", "tree"),
    ("POST", rf"/api/{NAME}/paths-info/(?P<rev>[^/]+)", "paths_info"),
    ("GET", rf"/api/{NAME}/revision/(?P<rev>[^/]+)", "info"),
    ("GET", rf"/api/{NAME}", "info"),
    ("GET", r"/(?:(?P<kind>datasets)/)?(?P<name>[^/]+/[^/]+?)/resolve/(?P<rev>[^/]+)/(?P<path>.+)", "resolve"),
]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.serve()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

    def serve(self) -> None:
        parts = urlsplit(self.path)
        path, self.query = parts.path, parse_qs(parts.query)
        self.hub.asked.append(f"{self.command} {unquote(path)}")
        try:
            self.send(self.answer(path))
        except _Cut:
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.close()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def answer(self, path: str) -> Answer:
        fault = self.fault(path)
        if fault and fault.do:
            fault.do()
        length = int(self.headers.get("Content-Length") or 0)
        if fault and fault.cut == 1:
            self.rfile.read(min(length // 2, 1000))
            raise _Cut
        self.body = self.chunks() if self.headers.get("Transfer-Encoding") == "chunked" else self.rfile.read(length)
        if len(self.body) < length:
            raise _Cut
        if fault and fault.status and not fault.after:
            return Answer(fault.status, {"error": "the Hub was told to fail"}, **fault.headers)
        done = self.work(path)
        if fault and fault.cut == 2:
            raise _Cut
        return Answer(fault.status, {"error": "told to fail"}, **fault.headers) if fault and fault.status else done

    def chunks(self) -> bytes:
        whole = b""
        while size := int(self.rfile.readline(), 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def fault(self, path: str) -> Fault | None:
        with self.hub.lock:
            for fault in self.hub.faults:
                if fault.times and fault.method == self.command and re.search(fault.path, unquote(path)):
                    fault.times -= 1
                    return fault
        return None

    def work(self, path: str) -> Answer:
        method = "GET" if self.command == "HEAD" else self.command
        for wanted, pattern, name in ROUTES:
            match = re.fullmatch(pattern, path)
            if match and wanted == method:
                found = {key: unquote(value) for key, value in match.groupdict().items() if value}
                if "name" in match.groupdict():
                    found.setdefault("kind", "models")
                try:
                    with self.hub.lock:
                        return getattr(self, f"on_{name}")(**found)
                except Answer as early:
                    return early
        return Answer(404, {"error": f"there is no {path} here"})

    def send(self, answer: Answer) -> None:
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        if not isinstance(answer.body, bytes):
            self.send_header("Content-Type", "application/json")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def user(self) -> dict[str, object] | None:
        said = self.headers.get("Authorization") or ""
        if not said:
            return None
        if said.removeprefix("Bearer ") not in self.hub.accounts:
            raise Answer(401, {"error": "Invalid credentials in Authorization header"})
        return self.hub.accounts[said.removeprefix("Bearer ")]

    def owner(self, name: str) -> bool:
        user = self.user()
        return bool(user) and name.split("/")[0] in (user["name"], *user["orgs"])  # type: ignore[misc, index]

    def repo(self, kind: str, name: str, *, write: bool = False) -> Repo:
        repo = self.hub.repos.get(f"{kind}/{name}")
        if repo is None or (repo.private and not self.owner(name)):
            raise Answer(404 if self.user() else 401, {"error": "Repository not found"}, X_Error_Code="RepoNotFound")
        if write and not (self.owner(name) and self.user()["role"] == "write"):  # type: ignore[index]
            raise Answer(403, {"error": "You don't have the rights to write here"})
        return repo

    def at(self, repo: Repo, rev: str) -> Commit:
        oid = repo.resolve(rev)
        if oid is None:
            raise Answer(404, {"error": f"Invalid rev id: {rev}"}, X_Error_Code="RevisionNotFound")
        return repo.commits[oid]

    def json(self) -> dict:
        return json.loads(self.body)

    def on_whoami(self) -> Answer:
        user = self.user()
        if user is None:
            return Answer(401, {"error": "Invalid username or password."})
        orgs = [{"type": "org", "name": name} for name in user["orgs"]]  # type: ignore[attr-defined]
        token = {"displayName": "test", "role": user["role"]}
        return Answer(200, {"type": "user", "name": user["name"], "orgs": orgs, "auth": {"accessToken": token}})

    def on_create(self) -> Answer:
        asked, user = self.json(), self.user()
        if user is None:
            return Answer(401, {"error": "Invalid username or password."})
        name = f"{asked.get('organization') or user['name']}/{asked['name']}"
        kind = f"{asked.get('type', 'model')}s"
        if user["role"] != "write" or not self.owner(name):
            return Answer(403, {"error": f"You don't have the rights to create a {kind} under this namespace"})
        url = f"{self.hub.url}/{kind}/{name}"
        if f"{kind}/{name}" in self.hub.repos:
            return Answer(409, {"error": "You already created this repo", "url": url})
        self.hub.add_repo(name, private=asked.get("visibility") == "private" or bool(asked.get("private")), kind=kind)
        return Answer(200, {"url": url, "name": name, "id": name})

    def on_validate(self) -> Answer:
        parts = self.json()["content"].replace("\r\n", "\n").split("---\n", 2)
        try:
            known = isinstance(yaml.safe_load(parts[1]), dict)
        except (yaml.YAMLError, IndexError):
            known = False
        errors = [] if known else [{"message": "the YAML is none"}]
        return Answer(400 if errors else 200, {"errors": errors, "warnings": []})

    def on_preupload(self, kind: str, name: str, rev: str) -> Answer:
        repo = self.repo(kind, name, write="create_pr" not in self.query)
        there = self.at(repo, rev).files
        return Answer(200, {"files": [
            {
                "path": f["path"], "uploadMode": "lfs" if is_large(f["path"]) else "regular", "shouldIgnore": False,
                **({"oid": _oid(f["path"], there[f["path"]])} if f["path"] in there else {}),
            }
            for f in self.json()["files"]
        ]})  # fmt: skip

    def on_batch(self, kind: str, name: str) -> Answer:
        self.repo(kind, name)
        objects = []
        for wanted in self.json()["objects"]:
            place = f"{self.hub.url}/storage/{wanted['oid']}"
            actions = {"upload": {"href": place}, "verify": {"href": f"{place}/verify"}}
            objects.append({**wanted, **({} if wanted["oid"] in self.hub.blobs else {"actions": actions})})
        return Answer(200, {"transfer": "basic", "objects": objects})

    def on_store(self, oid: str) -> Answer:
        if hashlib.sha256(self.body).hexdigest() != oid:
            return Answer(400, {"error": "the content is another than was said"})
        self.hub.blobs[oid] = self.body
        return Answer(200, b"", ETag=f'"{oid}"')

    def on_verify(self, oid: str) -> Answer:
        right = oid in self.hub.blobs and len(self.hub.blobs[oid]) == self.json()["size"]
        return Answer(200 if right else 404, {})

    def on_commit(self, kind: str, name: str, rev: str) -> Answer:
        pull = "create_pr" in self.query
        repo = self.repo(kind, name, write=not pull)
        if self.user() is None:
            return Answer(401, {"error": "Invalid username or password."})
        lines = [json.loads(line) for line in self.body.splitlines()]
        header = lines[0]["value"]
        base = self.at(repo, rev)
        if header.get("parentCommit", base.oid) != base.oid:
            return Answer(412, {"error": "A commit has happened since. Please refresh and try again."})
        files = dict(base.files)
        for line in lines[1:]:
            value, what = line["value"], line["key"]
            if what == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif what == "lfsFile":
                if len(self.hub.blobs.get(value["oid"], b"")) != value["size"]:
                    return Answer(400, {"error": f"LFS object {value['oid']} is not here"})
                files[value["path"]] = self.hub.blobs[value["oid"]]
            elif value["path"] not in files:
                return Answer(404, {"error": "A file with this name doesn't exist"}, X_Error_Code="EntryNotFound")
            else:
                del files[value["path"]]
        number = sum(ref.startswith("refs/pr/") for ref in repo.refs) + 1
        ref = f"refs/pr/{number}" if pull else rev if rev.startswith("refs/") else f"refs/heads/{rev}"
        if pull:
            repo.refs[ref] = base.oid
        oid = repo.commit(ref, files, header["summary"])
        url = f"{self.hub.url}/{kind}/{name}"
        discussion = f"{url}/discussions/{number}"
        return Answer(200, {"commitUrl": f"{url}/commit/{oid}", "commitOid": oid, "pullRequestUrl": discussion})

    def on_refs(self, kind: str, name: str) -> Answer:
        repo = self.repo(kind, name)

        def listed(start: str) -> list[dict[str, str]]:
            return [
                {"name": ref.removeprefix(start), "ref": ref, "targetCommit": oid}
                for ref, oid in repo.refs.items()
                if ref.startswith(start)
            ]

        return Answer(200, {"branches": listed("refs/heads/"), "tags": listed("refs/tags/"), "converts": []})

    def on_branch(self, kind: str, name: str, branch: str) -> Answer:
        repo = self.repo(kind, name, write=True)
        if f"refs/heads/{branch}" in repo.refs:
            return Answer(409, {"error": "Reference already exists"})
        repo.refs[f"refs/heads/{branch}"] = self.at(repo, self.json().get("startingPoint", "main")).oid
        return Answer(200, b"OK")

    def on_tag(self, kind: str, name: str, rev: str) -> Answer:
        repo, tag = self.repo(kind, name, write=True), self.json()["tag"]
        if f"refs/tags/{tag}" in repo.refs:
            return Answer(409, {"error": "Tag reference exists already"})
        repo.refs[f"refs/tags/{tag}"] = self.at(repo, rev).oid
        return Answer(200, b"OK")

    def on_info(self, kind: str, name: str, rev: str = "main") -> Answer:
        repo = self.repo(kind, name)
        commit = self.at(repo, rev)
        return Answer(200, {
            "_id": "0", "id": name, "author": name.split("/")[0], "sha": commit.oid, "private": repo.private,
            "gated": False, "disabled": False, "downloads": 0, "likes": 0, "tags": [], "usedStorage": 0,
            "lastModified": "2026-01-01T00:00:00.000Z", "createdAt": "2026-01-01T00:00:00.000Z",
            "siblings": [{"rfilename": path} for path in sorted(commit.files)],
        })  # fmt: skip

    def on_tree(self, kind: str, name: str, rev: str, path: str = "") -> Answer:
        files = self.at(self.repo(kind, name), rev).files
        under = {p: c for p, c in sorted(files.items()) if not path or p.startswith(f"{path}/")}
        if path and not under:
            raise Answer(404, {"error": f"{path} does not exist"}, X_Error_Code="EntryNotFound")
        folders = {"/".join(p.split("/")[:depth]) for p in under for depth in range(1, p.count("/") + 1)}
        entries = [_folder(f) for f in sorted(folders) if f != path and f.startswith(path)]
        entries += [_file(p, c) for p, c in under.items()]
        if (self.query.get("recursive") or ["False"])[0].lower() != "true":
            depth = path.count("/") + 1 if path else 0
            entries = [e for e in entries if e["path"].count("/") == depth]  # type: ignore[attr-defined]
        return Answer(200, entries)

    def on_paths_info(self, kind: str, name: str, rev: str) -> Answer:
        files = self.at(self.repo(kind, name), rev).files
        sent = self.headers.get("Content-Type", "").startswith("application/json")
        paths = self.json()["paths"] if sent else parse_qs(self.body.decode()).get("paths", [])
        found = [_file(p, files[p]) for p in paths if p in files]
        folders = [p for p in paths if any(f.startswith(f"{p}/") for f in files)]
        return Answer(200, [*found, *(_folder(p) for p in folders)])

    def on_resolve(self, kind: str, name: str, rev: str, path: str) -> Answer:
        commit = self.at(self.repo(kind, name), rev)
        if path not in commit.files:
            return Answer(404, {"error": "Entry not found"}, X_Error_Code="EntryNotFound", X_Repo_Commit=commit.oid)
        content = commit.files[path]
        etag = _oid(path, content)
        if not is_large(path):
            return self.part(content, X_Repo_Commit=commit.oid, ETag=f'"{etag}"')
        self.hub.blobs[etag] = content
        elsewhere = self.hub.url.replace("127.0.0.1", "localhost")
        return Answer(
            302, b"", Location=f"{elsewhere}/storage/{etag}", X_Repo_Commit=commit.oid,
            X_Linked_Etag=f'"{etag}"', X_Linked_Size=str(len(content)), ETag=f'"{etag}"',
        )  # fmt: skip

    def on_fetch(self, oid: str) -> Answer:
        if self.headers.get("Authorization"):
            return Answer(400, {"error": "a token of the Hub is not for the storage"})
        return self.part(self.hub.blobs[oid], ETag=f'"{oid}"')

    def part(self, content: bytes, **headers: str) -> Answer:
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if not match:
            return Answer(200, content, Accept_Ranges="bytes", **headers)
        start, end = int(match[1]), min(int(match[2] or len(content) - 1), len(content) - 1)
        return Answer(206, content[start : end + 1], Content_Range=f"bytes {start}-{end}/{len(content)}", **headers)


def _oid(path: str, content: bytes) -> str:
    return hashlib.sha256(content).hexdigest() if is_large(path) else git_id(content)


def _folder(path: str) -> dict[str, object]:
    return {"type": "directory", "path": path, "oid": git_id(path.encode()), "size": 0}


def _file(path: str, content: bytes) -> dict[str, object]:
    entry: dict[str, object] = {"type": "file", "path": path, "oid": git_id(content), "size": len(content)}
    if is_large(path):
        entry["lfs"] = {"oid": _oid(path, content), "size": len(content), "pointerSize": 130}
    return entry
