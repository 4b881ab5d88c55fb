#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes reports of every kind and looks at them.

report_check.py HEADLAB [--browser]: runs HEADLAB in a temporary folder. Without --browser the reports
are parsed as XML: every figure has its role, title, description and table, and nothing is asked of a
network. With it they are opened in headless Chromium in light, dark, narrow and print: every figure is visible,
its texts are readable and do not overlap, nothing is folded on paper, and no request is made. Exit code 77 where there is no
Chromium. Each check is tried on a page with a planted fault, which it has to find.
"""
import functools
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"
HTML = "{http://www.w3.org/1999/xhtml}"
MATH = "{http://www.w3.org/1998/Math/MathML}"
SCENARIOS = pathlib.Path(__file__).resolve().parent.parent.parent / "scenarios"
MAX_BYTES = 100_000  # of the report of the quickstart
MIN_CONTRAST = 4.5  # of text, by level AA of WCAG 2

BASE = """
[scenario]
name = "<b>sweep & 'co'</b>"
aims = "</title><script>alert(1)</script>"
[data]
n = 40
design = {{ law = "normal", dim = 8 }}
regression = {{ law = "single_index", direction = [1, 0, 0, 0, 0, 0, 0, 0], frequency = 1.0 }}
noise = {{ law = "normal", sd = 0.5 }}
[heads]
count = {heads}
dim = 2
subspaces = {{ law = "haar" }}
kernel = {{ law = "gaussian", bandwidth = 0.8 }}
[queries]
law = "points"
points = [[0, 0, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]]
[run]
seed = 7
replicates = {replicates}
"""

SWEEPS = {
    "sixteen": (4, 300, '"data.n" = [20, 40, 100, 400]\n"heads.kernel.bandwidth" = [0.2, 0.4, 0.8, 1.6]'),
    "laws": (3, 100, '"heads.subspaces" = [{ law = "haar" }, { law = "aligned" }, { law = "coordinates" },'
                     ' { law = "principal_angles", angles = [0.5, 0.7] }]\n'
                     '"data.noise" = [{ law = "normal", sd = 0.5 }, { law = "student_t", df = 3, sd = 0.5 }]'),
    "heads": (64, 60, ""),
    "alone": (1, 7, ""),
    "exact": (2, 20, '"data.fixed_design" = [true]'),
    "decades": (4, 100, '"heads.kernel.bandwidth" = [0.01, 0.1, 1, 10, 100]'),
    "noise": (2, 100, '"data.noise.sd" = [0.5, 1]'),
}
LONG = "ü" * 300 + "x" * 3000 + " <script>&amp;</script> 漢字 \u202e"  # as a name
CLAIM = """
[[claim.compare]]
name = "less noise, less error & <more>"
less = {{ figure = "mse", at = {{ "data.noise.sd" = 0.5 }} }}
than = {{ figure = "mse", at = {{ "data.noise.sd" = 1 }} }}
margin = 0.01
""".replace("{{", "{").replace("}}", "}")


def run(headlab, folder, *arguments):
    done = subprocess.run([headlab, *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"headlab {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")


def make_reports(headlab, folder):
    """Writes a report of every kind; returns their paths."""
    headlab_in = functools.partial(run, headlab, folder)
    headlab_in("run", str(SCENARIOS / "quickstart.toml"), "--quiet", "--report", "quickstart.html")
    for name, (heads, replicates, sweep) in SWEEPS.items():
        text = BASE.format(heads=heads, replicates=replicates)
        (folder / f"{name}.toml").write_text(text + (f"[sweep]\n{sweep}\n" if sweep else ""))
        headlab_in("run", f"{name}.toml", "--quiet", "--report", f"{name}.html")
    headlab_in("validate", "angles", "--quiet", "--report", "verdicts.html")
    budget = ["--budget", "4", "--replicates", "1024", "--quiet"]
    headlab_in("allocate", "--data", "alone.toml", *budget, "--n", "50", "--report", "allocation.html")
    headlab_in("allocate", "--data", "alone.toml", *budget, "--n", "50,100,200,400", "--growth",
               "--report", "growth.html")
    headlab_in("allocate", "--map", "--data", "noise.toml", *budget, "--n", "50,100,200,400", "--out", "map",
               "--report", "map.html")
    headlab_in("import-heads", str(SCENARIOS / "data/small_model"), "--out", "heads.nc")
    headlab_in("hdi", "heads.nc", "--report", "hdi.html")
    headlab_in("heads", str(SCENARIOS / "data/small_layers.safetensors"), "--report", "on-text.html")
    (folder / "noise.html").unlink()
    headlab_in("run", "sixteen.toml", "--quiet", "--difference", "data.n", "--report", "differences.html")
    headlab_in("run", "noise.toml", "--quiet", "--against", "#0", "--compare", "--set", "data.fixed_design=true",
               "--report", "against.html")
    headlab_in("run", "alone.toml", "--quiet", "--compare", "--set", "data.fixed_design=true",
               "--report", "compared.html")
    headlab_in("run", str(SCENARIOS / "quickstart.toml"), "--quiet", "--compare", "--report", "closed-forms.html")
    headlab_in("run", str(SCENARIOS / "random_heads.toml"), "--quiet", "--replicates", "256",
               "--report", "redraw.html")
    headlab_in("run", "alone.toml", "--quiet", "--set", f"scenario.name={json.dumps(LONG, ensure_ascii=False)}",
               "--report", "long.html")
    headlab_in("run", str(SCENARIOS / "quickstart.toml"), "--quiet", "--until", "mse=0.2%", "--report", "until.html")
    headlab_in("run", str(SCENARIOS / "fixed_design.toml"), "--quiet", "--replicates", "256",
               "--report", "fixed.html")
    headlab_in("run", str(SCENARIOS / "hidden_state.toml"), "--quiet", "--replicates", "256",
               "--report", "hidden.html")
    headlab_in("theory", str(SCENARIOS / "quickstart.toml"), "--json", "theory.json")
    headlab_in("report", "theory.json", "--out", "theory.html")
    study = (folder / "noise.toml").read_text().replace("replicates = 100", "replicates = 8192")
    (folder / "claims.toml").write_text(study + CLAIM)
    headlab_in("validate", "claims.toml", "--quiet", "--report", "claims.html")
    return sorted(folder.glob("*.html"))


# Without a browser.

def outside_faults(text):
    """Whatever a page could ask a network for, or run. Quotes of plain text are escaped."""
    for pattern in (r"<script", r'\bsrc="', r'\bhref="(?!#)', r"<link", r'\bon\w+="'):
        if re.search(pattern, text):
            yield f"has {pattern}"
    for style in re.findall(r"<style>.*?</style>", text, re.S):
        if "url(" in style or "@import" in style:
            yield "has a style from elsewhere"
    if "default-src 'none'; style-src 'unsafe-inline'" not in html.unescape(text):
        yield "has no content security policy"


def figure_faults(root):
    figures = root.findall(f".//{HTML}figure")
    if not figures:
        yield "has no figure"
    identifiers = [one.get("id") for one in root.iter() if one.get("id")]
    if len(identifiers) != len(set(identifiers)):
        yield "has an id twice"
    for figure in figures:
        name = figure.get("id")
        pictures = figure.findall(f".//{SVG}svg")
        if len(pictures) != 2:
            yield f"{name}: has {len(pictures)} pictures, not one for wide and one for narrow windows"
        if figure.find(f".//{HTML}details//{HTML}table") is None:
            yield f"{name}: no table"
        for svg in pictures:
            if svg.get("role") != "img":
                yield f"{name}: no role img"
            for tag, attribute in (("title", "aria-labelledby"), ("desc", "aria-describedby")):
                node = svg.find(f"{SVG}{tag}")
                if node is None or not (node.text or "").strip() or node.get("id") != svg.get(attribute):
                    yield f"{name}: no {tag}"
            if not (svg.findtext(f"{SVG}desc") or "").rstrip().endswith("."):
                yield f"{name}: its description is not a sentence"
            if "nan" in ElementTree.tostring(svg, encoding="unicode").lower().replace("finan", ""):
                yield f"{name}: a NaN"


def outline_faults(root):
    """Names of sections that are not there, and headings that leave out a level."""
    identifiers = {one.get("id") for one in root.iter() if one.get("id")}
    for one in root.iter():
        for attribute in ("aria-labelledby", "aria-describedby"):
            if one.get(attribute) and one.get(attribute) not in identifiers:
                yield f"{attribute} {one.get(attribute)} is not there"
        link = one.get("href")
        if link and link[1:] not in identifiers:
            yield f"the link {link} leads nowhere"
    before = 0
    for one in root.iter():
        level = re.fullmatch(re.escape(HTML) + "h([1-6])", str(one.tag))
        if not level:
            continue
        if int(level[1]) > before + 1:
            yield f"a heading of level {level[1]} follows one of level {before}"
        before = int(level[1])
    if root.get("lang") is None:
        yield "has no language"


def luminance(color):
    """Relative luminance of #rgb or #rrggbb by WCAG 2."""
    digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
    parts = [int(digits[i:i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """Ratio of contrast by WCAG 2, from 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def contrast_faults(text):
    """Colours of text that stand out too little from what is behind them, in each scheme."""
    style = re.search(r"<style>(.*?)</style>", text, re.S)[1]
    schemes = {"light": {}}
    for found in re.finditer(r"(@media ([^{]*)\{(?:@page\{[^}]*\})?\s*)?:root\{([^}]*)\}", style):
        colors = dict(re.findall(r"--(\w+):(#[0-9a-f]{3,6})\b", found[3]))
        name = "dark" if "dark" in (found[2] or "") else "print" if found[2] else "light"
        schemes[name] = {**schemes["light"], **colors}
    if set(schemes) != {"light", "dark", "print"}:
        yield f"has the schemes {', '.join(schemes)}"
    # Text of figures is filled; --k is the colour of shapes.
    inks = set(re.findall(r"[{;]color:var\(--(\w+)\)", style))
    inks |= set(re.findall(r"(?:^|\})(?:text|\.soft)\{fill:var\(--(\w+)\)", style))
    grounds = set(re.findall(r"[{;]background:var\(--(\w+)\)", style)) | {"zone"}
    if not {"fg", "soft", "c1"} <= inks or not {"bg", "grid"} <= grounds:
        yield f"colours of text {sorted(inks)} on {sorted(grounds)} are not all there"
    for name, colors in schemes.items():
        for ink in sorted(inks):
            # Only plain text stands in headings of tables and in zones.
            for ground in sorted(grounds) if ink == "fg" else ["bg"]:
                ratio = contrast(colors[ink], colors[ground])
                if not ratio >= MIN_CONTRAST:
                    yield f"{name}: --{ink} on --{ground} has a contrast of {ratio:.2f}"


def shown_texts(node):
    """The texts of a part of a page besides code, styles, and listings of files."""
    if node.tag in (HTML + "code", HTML + "pre", HTML + "style"):
        return
    if node.text:
        yield node.text
    for inside in node:
        yield from shown_texts(inside)
        if inside.tail:
            yield inside.tail


def spelling_faults(root):
    """Numbers with exponents as programs write them; in pictures, captions and tables keys too."""
    for text in shown_texts(root.find(f"{HTML}body")):
        for found in re.findall(r"(?<![\w.])[\d.]+e[-+−]?\d+\b|\)e[-+−]?\d+\b", text):
            yield f"the number {found}"
    for figure in root.findall(f".//{HTML}figure"):
        for text in shown_texts(figure):
            for found in re.findall(r"\b\w+_\w\w+\b(?![.\w])", text):
                yield f"{figure.get('id')}: the key {found}"


def page_faults(text):
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        return [f"is not well-formed: {error}"]
    return [*outside_faults(text), *figure_faults(root), *outline_faults(root), *contrast_faults(text),
            *spelling_faults(root)]


def check_bytes(headlab, folder):
    """The same results make the same bytes; the time that a report takes is told and not judged."""
    run(headlab, folder, "run", str(SCENARIOS / "quickstart.toml"), "--quiet", "--out", "quickstart")
    seconds = []
    for number in range(5):
        start = time.perf_counter()
        run(headlab, folder, "report", "quickstart", "--out", "again.html")
        seconds.append(time.perf_counter() - start)
        if (folder / "again.html").read_bytes() != (folder / "quickstart.html").read_bytes():
            yield "quickstart.html: has other bytes when it is made again"
    run(headlab, folder, "run", str(SCENARIOS / "quickstart.toml"), "--quiet", "--seed", "8",
        "--report", "again.html")
    if (folder / "again.html").read_bytes() == (folder / "quickstart.html").read_bytes():
        yield "negative control: another seed has the same bytes"
    size = (folder / "quickstart.html").stat().st_size
    print(f"report of the quickstart: {size} bytes, {min(seconds):.3f} s (best of {len(seconds)})")


def check_pages(pages):
    faults = []
    for page in pages:
        text = page.read_text()
        faults += [f"{page.name}: {fault}" for fault in page_faults(text)]
        if "<script" in text or "<b>sweep" in text:
            faults.append(f"{page.name}: markup of a scenario is not escaped")
    by_name = {page.name: page.read_text() for page in pages}
    if len(by_name["quickstart.html"].encode()) >= MAX_BYTES:
        faults.append(f"quickstart.html: has {len(by_name['quickstart.html'].encode())} bytes")
    if ElementTree.fromstring(by_name["quickstart.html"]).find(f".//{MATH}math") is None:
        faults.append("quickstart.html: has no formula")
    before_aims = by_name["verdicts.html"].split(">Aims<")[0]
    if "What survives" not in before_aims or before_aims.count("<figure") != 1:
        faults.append("verdicts.html: does not open with a figure and what survives")
    planted = by_name["quickstart.html"]
    for before, after in (("</figure>", "</figur>"), ('role="img"', 'role="none"'),
                          ("<desc ", "<metadata "), ("<main>", '<main><img src="x"/>'),
                          ("default-src", "font-src"),
                          ("--soft:#595959", "--soft:#808080"), ("--soft:#b4b4b4", "--soft:#6f6f6f"),
                          ("--soft:#444", "--soft:#888"), ("<h2", "<h4"),
                          ('aria-labelledby="title"', 'aria-labelledby="titel"'),
                          ("</style>", "p{background:url(x)}</style>"), ("<details>", "<div>"),
                          ("<figcaption>", "<figcaption>1e-05 "), ("<figcaption>", "<figcaption>(1 ± 2)e−5 "),
                          ("<figcaption>", "<figcaption>fixed_design "), ("</h1>", " 2.5e7</h1>")):
        wrong = planted.replace(before, after)
        if wrong == planted:
            faults.append(f"negative control: {before} is not there")
        if before == "<desc ":
            wrong = wrong.replace("</desc>", "</metadata>")
        if before == "<details>":
            wrong = wrong.replace("</details>", "</div>")
        if before == "<h2":
            wrong = wrong.replace("</h2>", "</h4>")
        if not page_faults(wrong):
            faults.append(f"negative control: {before} replaced by {after} is not found")
    return faults


# In a browser.

LOOK = """<!DOCTYPE html><meta charset="utf-8"><body><script>
const pages = PAGES, found = [];
let left = pages.length;
const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
                          Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
const light = (color) => {
  const [r, g, b] = color.match(/[\\d.]+/g).map((x) => Number(x) / 255);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
// What is wide scrolls in its own box.
function wide(document, window, say) {
  if (document.documentElement.scrollWidth > window.innerWidth + 1)
    say("the page is " + document.documentElement.scrollWidth + " wide in " + window.innerWidth);
}
// On paper and in a window of 1280 pixels nothing scrolls, and in a narrow one a table of names and values
// does not; the name of a row that is short stands on one line.
function tables(document, window, say, all) {
  for (const box of document.querySelectorAll(".scroll")) {
    if (!box.checkVisibility()) continue;
    const words = box.textContent.slice(0, 40);
    const few = box.querySelector("tr").cells.length <= 2;
    if (box.scrollWidth > box.clientWidth + 1 && (all || few)) say("a table is cut off: " + words);
    for (const cell of box.querySelectorAll(".n")) {
      const text = document.createRange();
      text.selectNodeContents(cell);
      // The errors of a wide table have lines of their own.
      const error = cell.querySelector(".whole");
      if (error && window.getComputedStyle(error).display === "block") continue;
      if (text.getBoundingClientRect().height > 2 * parseFloat(window.getComputedStyle(cell).fontSize))
        say((cell.tagName === "TH" ? "a name" : "an estimate") + " breaks: " + cell.textContent);
    }
  }
}
// A subscript reaches below what it stands at, with or without a mathematics font, and a power above.
function scripts(document, say) {
  for (const one of document.querySelectorAll("msub, msup")) {
    if (!one.checkVisibility()) continue;
    const [base, script] = [...one.children].map((child) => child.getBoundingClientRect());
    const middle = (script.top + script.bottom - base.top - base.bottom) / 2;
    const off = (one.localName === "msub" ? middle : -middle) / base.height;
    if (!(off > 0.1 && off < 0.8)) say("a script stands " + off.toFixed(2) + " off: " + one.textContent);
  }
}
function look(page, document, window, mode) {
  const say = (text) => found.push(page + ", " + mode + ": " + text);
  const ground = light(window.getComputedStyle(document.body).backgroundColor);
  if (mode === "dark" ? ground > 0.3 : ground < 0.7) say("the page is not " + mode);
  wide(document, window, say);
  for (const folded of document.querySelectorAll("details"))
    if (mode === "print" && ![...folded.children].every((inside) => inside.checkVisibility()))
      say("folded on paper: " + folded.firstElementChild.textContent);
  pictures(document, window, say, ground);
  tables(document, window, say, mode === "print");
  scripts(document, say);
  for (const listing of document.querySelectorAll("pre"))
    if (mode === "print" && window.getComputedStyle(listing).breakInside !== "avoid") say("a listing breaks");
}
function pictures(document, window, say, ground) {
  const figures = document.querySelectorAll("figure");
  if (figures.length === 0) say("no figure");
  for (const figure of figures) {
    const all = [...figure.querySelectorAll("svg")];
    const svg = all.find((one) => one.checkVisibility()) ?? all[0];
    const box = svg.getBoundingClientRect();
    if (!(box.width > 200 && box.height > 40)) say(figure.id + " has no size");
    if (box.right > window.innerWidth) say(figure.id + " goes beyond the window");
    if (!svg.checkVisibility({opacityProperty: true, visibilityProperty: true})) say(figure.id + " is hidden");
    const drawn = [...svg.querySelectorAll("path")].filter((path) => {
      const style = window.getComputedStyle(path);
      const ink = [style.fill, style.stroke].filter((color) => color !== "none");
      return ink.some((color) => Math.abs(light(color) - ground) > 0.15);
    });
    if (drawn.length < 3) say(figure.id + " has no ink");
    const texts = [...svg.querySelectorAll("text")].filter((text) => !text.getAttribute("transform"));
    for (const text of svg.querySelectorAll("text")) {
      // Such numbers stand on cells of a strong colour (tools/report/heat_map.test.cpp).
      const on_cell = text.classList.contains("ink") || text.classList.contains("ground");
      if (!on_cell && Math.abs(light(window.getComputedStyle(text).fill) - ground) < 0.3)
        say(figure.id + ": faint: " + text.textContent);
      const place = text.getBoundingClientRect();
      if (place.left < box.left - 1 || place.right > box.right + 1 || place.top < box.top - 1 ||
          place.bottom > box.bottom + 1) say(figure.id + ": outside: " + text.textContent);
    }
    const bars = [...svg.querySelectorAll(".area")].map((bar) => bar.getBoundingClientRect());
    for (const mark of svg.querySelectorAll(".mark"))
      if (bars.some((bar) => overlap(bar, mark.getBoundingClientRect()))) say(figure.id + ": a mark covers a bar");
    const boxes = texts.map((text) => text.getBoundingClientRect());
    for (let i = 0; i < texts.length; ++i)
      for (let j = i + 1; j < texts.length; ++j)
        if (overlap(boxes[i], boxes[j])) say(figure.id + ": overlap: " + texts[i].textContent + " | " + texts[j].textContent);
  }
}
for (const page of pages) {
  const frame = document.createElement("iframe");
  frame.style.cssText = "width:820px;height:3000px";
  frame.src = page;
  frame.onload = () => {
    const inside = frame.contentDocument, window = frame.contentWindow;
    look(page, inside, window, "MODE");
    frame.style.width = "400px";
    const narrow = (text) => found.push(page + ", narrow: " + text);
    wide(inside, window, narrow);
    pictures(inside, window, narrow, light(window.getComputedStyle(inside.body).backgroundColor));
    tables(inside, window, narrow, false);
    frame.style.width = "1280px";
    const folded = [...inside.querySelectorAll("details")];
    for (const one of folded) one.open = true;
    tables(inside, window, (text) => found.push(page + ", 1280 px: " + text), true);
    for (const one of folded) one.open = false;
    frame.style.width = "680px";  // A4 less its margins
    const rules = inside.styleSheets[0].cssRules;
    for (const rule of [...rules])
      if (rule instanceof window.CSSMediaRule && rule.media.mediaText === "print") rule.media.mediaText = "all";
    look(page, inside, window, "print");
    if (--left === 0) document.body.textContent = "FOUND" + JSON.stringify(found) + "END";
  };
  document.body.append(frame);
}
</script>"""


def chromium(program, folder, *arguments):
    """Standard output, and the addresses that were asked for."""
    log = folder / "net.json"
    done = subprocess.run(
        [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-default-apps", "--no-first-run",
         "--disable-dev-shm-usage", "--allow-file-access-from-files", f"--user-data-dir={folder / 'profile'}",
         "--host-resolver-rules=MAP * ~NOTFOUND", f"--log-net-log={log}", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        sys.exit(f"{program}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout, set(re.findall(r'"url":"((?:https?|wss?)://[^"]*)"', log.read_text()))


def look_at(program, folder, pages, mode):
    page = folder / "look" / "look.html"
    page.parent.mkdir(exist_ok=True)
    names = [os.path.relpath(path, page.parent) for path in pages]
    page.write_text(LOOK.replace("PAGES", json.dumps(names)).replace("MODE", mode))
    scheme = "0" if mode == "dark" else "1"
    out, asked = chromium(program, folder, f"--blink-settings=preferredColorScheme={scheme}",
                          "--virtual-time-budget=20000", "--dump-dom", page.as_uri())
    found = re.search(r"FOUND(.*)END", out, re.S)
    if not found:
        return ["the browser did not finish"], asked
    return json.loads(html.unescape(found[1])), asked


def check_in_browser(program, folder, pages):
    faults, base = look_at(program, folder, pages, "light")
    more, asked = look_at(program, folder, pages, "dark")
    faults += more
    # What the browser asks for by itself it asks for without a report too.
    blank = folder / "look" / "blank.html"
    blank.write_text("<!DOCTYPE html><title>blank</title>")
    _, own = chromium(program, folder, "--dump-dom", blank.as_uri())
    faults += [f"asks for {address}" for address in (base | asked) - own if "google" not in address]
    # Each page on A4.
    for page in pages:
        if page.name not in ("quickstart.html", "verdicts.html"):
            continue
        pdf = folder / "look" / "page.pdf"
        chromium(program, folder, f"--print-to-pdf={pdf}", "--no-pdf-header-footer", page.as_uri())
        if not re.search(rb"/MediaBox \[0 0 59[45][.\d]* 84[12]", pdf.read_bytes()):
            faults.append(f"{page.name}: does not print on A4")

    # Negative controls: hidden, without size, faint, overlapping, outside; and a request.
    text = (folder / "quickstart.html").read_text()
    wrong = folder / "look" / "wrong.html"
    for before, after, words in (
            ("</style>", "figure{visibility:hidden}</style>", "is hidden"),
            ("</style>", "svg{display:none}</style>", "has no size"),
            ("</style>", "details::details-content{content-visibility:hidden!important}</style>", "folded"),
            ("</style>", "text{fill:var(--bg)}</style>", "faint"),
            ("</style>", "svg{font-size:40px}</style>", "overlap"),
            ("</style>", "svg{font-size:40px}</style>", "outside"),
            ("</style>", ".mark{transform:translateY(12px)}</style>", "a mark covers a bar"),
            ("</style>", "h1{white-space:pre;width:2000px}</style>", "the page is"),
            ("</style>", "th.n,th.n *{white-space:normal!important;max-width:1rem}</style>", "a name breaks"),
            ("</style>", "td.n{white-space:nowrap!important;font-size:20px}</style>", "a table is cut off"),
            ("</style>", "td.n{white-space:nowrap!important;font-size:20px}</style>", "1280 px: a table is cut off"),
            ("</style>", ".long{overflow-wrap:normal}</style>", "narrow: a table is cut off"),
            ("</style>", "td.n{white-space:normal!important;width:1rem}</style>", "an estimate breaks"),
            ("</style>", "msub>*{vertical-align:baseline!important}</style>", "a script stands"),
            ("</style>", "pre{break-inside:auto!important}</style>", "a listing breaks"),
            ("</style>", "dd{min-width:40rem}</style>", "narrow: the page is"),
            ("</style>", ".narrow svg{width:40rem}</style>", "goes beyond the window"),
            ("</style>", "path{fill:none!important;stroke:none!important}</style>", "no ink")):
        # The last rule counts, in print too.
        wrong.write_text(text.replace(before, after))
        found, _ = look_at(program, folder, [wrong], "light")
        if not any(words in one for one in found):
            faults.append(f"negative control: {after} is not found")
    wrong.write_text("<!DOCTYPE html><img src='http://planted.invalid/x.png'>")
    _, planted = chromium(program, folder, "--dump-dom", wrong.as_uri())
    if not any("planted.invalid" in address for address in planted):
        faults.append("negative control: a request is not found")
    return faults


def main():
    if len(sys.argv) not in (2, 3) or (len(sys.argv) == 3 and sys.argv[2] != "--browser"):
        sys.exit("report_check.py: usage: report_check.py HEADLAB [--browser]")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if len(sys.argv) == 3 and not program:
        print("skipped: no Chromium here")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        pages = make_reports(os.path.abspath(sys.argv[1]), folder)
        if len(sys.argv) == 3:
            faults = check_in_browser(program, folder, pages)
        else:
            faults = [*check_pages(pages), *check_bytes(os.path.abspath(sys.argv[1]), folder)]
    for fault in faults:
        print(fault)
    print(f"{len(pages)} reports, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
