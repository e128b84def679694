#!/usr/bin/env python3
"""Checks the repository's links to its own files, and is mkdocs's hook for those that leave docs/.

    python3 scripts/docs_links.py     exit with 1 if a link or an anchor leads nowhere

In Markdown files every relative link and every anchor is followed. In all other text files every mention of a path in
docs/, such as docs/design/msm.md, must name one that exists. Every test that docs/design/threats.md names must be there.
"""
import posixpath
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOB = "https://github.com/tandem-zk/tandem/blob/main/"
FENCE = re.compile(r"^ *(```|~~~)")
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"(\]\()([^()\s]+)(\))")
MENTION = re.compile(r"(?<![\w./:-])(?:\.\./)*(docs/[\w./-]*[\w-])(#[\w-]+)?")
ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:")
# Texts that are no documents, and a test that makes up names.
PASSED_OVER = {"xtask/src/tidy.rs", "mkdocs.yml"}


def prose(text):
    """The lines of a Markdown text outside of fences, without what is quoted as code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, CODE.sub(lambda code: "`" * len(code[0]), line)


def anchors(text):
    """The anchors that GitHub and mkdocs make of a text's headings."""
    found, fenced = {}, False
    for line in text.splitlines():
        fenced ^= bool(FENCE.match(line))
        if fenced or not re.match(r"#{1,6} ", line):
            continue
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip().lower())
        slug = re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-")
        found[slug] = found.get(slug, -1) + 1
    return {f"{slug}-{i}" if i else slug for slug, count in found.items() for i in range(count + 1)}


def resolve(path, target):
    """The file of the repository that a link of `path` means, and its anchor; None if it leads elsewhere."""
    if ELSEWHERE.match(target) or target.startswith("//"):
        return None
    name, _, anchor = target.partition("#")
    return (posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) if name else path), anchor


def problem(name, anchor):
    """Why there is no such place, or None."""
    if name.startswith("..") or not (ROOT / name).exists():
        return f"there is no {name}"
    if anchor and name.endswith(".md") and anchor not in anchors((ROOT / name).read_text(encoding="utf-8")):
        return f"{name} has no heading for #{anchor}"
    return None


def files():
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    names = sorted({name for name in listed.stdout.decode().split("\0") if name})
    return [name for name in names if (ROOT / name).is_file()]


def check():
    broken, followed = [], 0
    for path in files():
        if path in PASSED_OVER or path.endswith((".jsonl", ".svg", ".lock")):
            continue
        try:
            text = (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if path.endswith(".md"):
            found = [(n, link[2]) for n, line in prose(text) for link in LINK.finditer(line)]
            places = [(n, resolve(path, target)) for n, target in found]
        else:
            lines = enumerate(text.splitlines(), 1)
            places = [(n, (m[1], (m[2] or "")[1:])) for n, line in lines for m in MENTION.finditer(line)]
        for number, place in places:
            if place is None:
                continue
            followed += 1
            why = problem(*place)
            if why:
                broken.append(f"{path}:{number}: {why}")
    broken.extend(missing_tests())
    print("\n".join(broken + [f"{followed} links followed, {len(broken)} broken"]))
    return 1 if broken else 0


def missing_tests():
    """What the last column of docs/design/threats.md names and no Rust file, script or fuzz target is called."""
    page = "docs/design/threats.md"
    tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [Path(line) for line in tracked.stdout.splitlines()]
    known = {path.stem for path in paths} | {str(path) for path in paths} | {"command_line"}
    for path in paths:
        if path.suffix == ".rs" and (ROOT / path).is_file():
            known.update(re.findall(r"\bfn (\w+)", (ROOT / path).read_text(encoding="utf-8")))
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        cells = line.split("|")
        if len(cells) == 5:
            for name in re.findall(r"`([^`]+)`", cells[3]):
                if name.rsplit("::", 1)[-1] not in known and not (ROOT / name).exists():
                    yield f"{page}:{number}: there is no test {name}"


def on_page_markdown(markdown, page, **_):
    """mkdocs: links that leave docs/ lead to the repository."""
    path = "docs/" + page.file.src_uri

    def outside(link):
        place = resolve(path, link[2])
        if place is None or place[0].startswith("docs/"):
            return link[0]
        return link[1] + BLOB + place[0] + ("#" + place[1] if place[1] else "") + link[3]

    fenced, lines = False, []
    for line in markdown.split("\n"):
        fenced ^= bool(FENCE.match(line))
        lines.append(line if fenced else LINK.sub(outside, line))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(check())
