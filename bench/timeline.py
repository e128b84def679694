"""Draws a trace of `tandem --trace FILE` as an SVG: a bar for each span, a line for each row of a lane.

    python3 bench/timeline.py trace.json timeline.svg

Of several proofs the last is drawn. The host has a line of its stages. `bench groth16 --trace` keeps the GPUs' spans of one proof alone, behind
those that it measures: then that one is drawn.
"""

import html
import json
import sys

WIDTH, LEFT, LINE, BAR = 1000, 150, 26, 18
COLOURS = {"upload": "#d08c34", "copy": "#d08c34", "exchange": "#d08c34", "MSM": "#3b6ea8", "digits": "#7ba3cf", "NTT": "#4f9d69"}


def colour(name):
    found = [value for word, value in COLOURS.items() if word in name]
    return found[0] if found else "#9a9a9a"


def rows(events):
    """Spans of each row of the last proof, in milliseconds from its beginning."""
    names = {(e["pid"], e.get("tid")): e["args"]["name"] for e in events if e["ph"] == "M"}
    spans = [e for e in events if e["ph"] == "X"]
    proofs = [e for e in spans if (e["pid"], e["tid"], e["name"]) == (0, 0, "prove")]
    if not proofs:
        sys.exit("no span named prove: trace a proof, as by tandem prove --trace FILE")
    begin, end = proofs[-1]["ts"], proofs[-1]["ts"] + proofs[-1]["dur"]
    of_devices = [e for e in spans if e["pid"] > 0]
    if of_devices and all(e["ts"] > end for e in of_devices):
        begin, end = min(e["ts"] for e in of_devices), max(e["ts"] + e["dur"] for e in of_devices)
    found = {}
    for e in spans:
        is_stage = (e["pid"], e["tid"]) == (0, 1) and begin <= e["ts"] <= end
        if is_stage or e["pid"] > 0 and begin - 100 <= e["ts"] <= end:
            title = f"{names.get((e['pid'], None), 'host')}, {names.get((e['pid'], e['tid']), 'stages')}"
            found.setdefault((e["pid"], e["tid"], title), []).append(((e["ts"] - begin) / 1e3, e["dur"] / 1e3, e["name"]))
    return [(title, sorted(spans)) for (_, _, title), spans in sorted(found.items())], (end - begin) / 1e3


def draw(lines, length):
    """The SVG."""
    scale = (WIDTH - LEFT - 20) / max(length, 1e-9)
    height = LINE * (len(lines) + 2)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">']
    for line, (title, spans) in enumerate(lines):
        y = LINE * line + 8
        out.append(f'<text x="4" y="{y + 13}">{html.escape(title)}</text>')
        for start, duration, name in spans:
            x, width = LEFT + max(start, 0) * scale, max(duration * scale, 0.5)
            label = html.escape(name)
            out.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colour(name)}" stroke="white" stroke-width="0.5">'
                       f"<title>{label}, {duration:.3f} ms</title></rect>")
            if width > 6.2 * len(name):
                out.append(f'<text x="{x + 3:.1f}" y="{y + 13}" fill="white">{label}</text>')
    y = LINE * len(lines) + 22
    for part in range(11):
        x = LEFT + part * length * scale / 10
        out.append(f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{part * length / 10:.1f}</text>')
    out.append(f'<text x="4" y="{y}">ms</text></svg>')
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        drawn = draw(*rows(json.load(file)["traceEvents"]))
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(drawn)
