// SPDX-License-Identifier: Apache-2.0
#include "tools/report/page.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <utility>

#include "engine/files/atomic_file.h"
#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/input_file.h"
#include "engine/files/json_writer.h"
#include "kernels/counted.h"
#include "tools/cli/figure_text.h"
#include "tools/cli/output_folder.h"
#include "tools/report/figure.h"
#include "tools/report/markup.h"
#include "tools/report/sections.h"

namespace headlab::tools {
namespace {

/// The style of a report besides its colours and pictures. Scripts of formulas are placed as those
/// of text are: without a mathematics font a browser does not know how high they belong.
constexpr const char* page_style = R"(
body{margin:0 auto;padding:1rem;max-width:50rem;background:var(--bg);color:var(--fg);
font:16px/1.5 system-ui,"Liberation Sans",Arial,sans-serif;overflow-wrap:break-word}
h1,h2,h3{line-height:1.25}h1{font-size:1.6rem}h2{font-size:1.3rem;border-bottom:1px solid var(--rule);margin-top:2.5rem}
h3{font-size:1.05rem;margin-bottom:.3rem}dt{font-weight:600}dd{margin:0 0 .5rem 1.5rem}dd p{margin:0}
figure{margin:1.5rem 0}figcaption{margin-top:.4rem}.note{color:var(--soft);font-size:.9rem}
.scroll{overflow-x:auto}@media (min-width:54rem){details .scroll{width:max-content;min-width:100%;max-width:calc(50vw + 23.5rem)}}
svg{display:block;width:100%;height:auto;font-size:12px}
.narrow{display:none;max-width:28rem}@media (max-width:36rem){.wide{display:none}.narrow{display:block}}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums;margin:.2rem 0 .5rem}.caption{color:var(--soft);font-size:.85rem;margin:.5rem 0 0}
th,td{border:1px solid var(--rule);padding:.2rem .35rem;text-align:left;vertical-align:top}
thead th{background:var(--grid)}td ul{margin:0;padding-left:1rem}td p{margin:.3rem 0}.claims th{width:14%}.claims td{width:43%}tbody th{font-weight:400}
code{overflow-wrap:anywhere}code,pre{font:13px/1.45 ui-monospace,"Liberation Mono",monospace}pre{white-space:pre-wrap;border:1px solid var(--rule);padding:.6rem}
@media (max-width:30rem){dd{margin-left:.5rem}dd math{font-size:.84em}.note math{font-size:1em}.claims tr{display:grid}.claims thead{display:none}.claims th,.claims td{width:auto}
.claims td{border-top:0}.claims td:nth-child(2)::before{content:"holds as: "}.claims td:nth-child(3)::before{content:"fails as, or is open as: "}}
sub,sup{line-height:0}math{math-style:normal}math[display=block]{margin:.4em 0}mfrac>*{padding:.15em .1em}munder,munderover{padding:0 .15em}:is(munder,munderover)>:nth-child(2){padding-top:.25em}munderover>:last-child{padding-bottom:.2em}
@supports (display:inline math){msub,msup,msubsup{display:inline-block}:is(msub,msup,msubsup)>*{display:inline math}
:is(msub,msup,msubsup)>:not(:first-child){font-size:.72em;math-depth:0}:is(msub,msubsup)>:nth-child(2){vertical-align:-.3em}msup>:last-child,msubsup>:last-child{vertical-align:.5em}msup:has(>:first-child mfrac)>:last-child{vertical-align:top}}
.n,.whole{white-space:nowrap}th:nth-last-child(n+8)~td.n>.whole:last-child{display:block}.long{overflow-wrap:anywhere}.scroll tbody th:not(.n){min-width:9em}.files{columns:23rem}.files code,.files code span{white-space:normal;overflow-wrap:anywhere}.symbols{columns:15rem}.symbols div{break-inside:avoid;padding-left:1.2rem;text-indent:-1.2rem}.symbols dt,.symbols dd{display:inline;margin:0}code span{white-space:nowrap}dd{overflow-x:auto;overflow-y:hidden;padding-top:.4rem;margin-top:-.4rem}
summary{cursor:pointer;color:var(--soft);font-size:.9rem}a{color:var(--c1)}
.c0{--k:var(--c0)}.c1{--k:var(--c1)}.c2{--k:var(--c2)}.c3{--k:var(--c3)}.c4{--k:var(--c4)}.c5{--k:var(--c5)}.c6{--k:var(--c6)}
)";

/// On paper what can be folded is open, tables break between rows under repeated heads, and a
/// picture leaves room on its page for a heading, a small table and its caption.
constexpr const char* print_style = R"(
body{max-width:none;padding:0;font-size:10.5pt}svg{max-height:140mm}.tall svg{max-height:195mm}.scroll,details .scroll{overflow:visible;width:auto;max-width:none}pre{box-decoration-break:clone;-webkit-box-decoration-break:clone}
svg,figcaption,tr,dt,li,thead,summary,pre,dd:has(.note),table:not(.claims):not(:has(tr:nth-child(13))){break-inside:avoid}h2,h3,summary,.caption,td p{break-after:avoid}td code,.claims .note{font-size:inherit}figure>div,dt,p:has(+dl){break-after:avoid}
dd{overflow:visible}.files{columns:2}table{font-size:7.5pt}table:has(th:nth-child(7)){font-size:6.5pt}table:has(th:nth-child(9)){font-size:5.5pt}.files code{font-size:6.4pt}th,td{padding:.15rem .3rem}.claims tr{break-inside:auto}pre{font-size:8pt}
thead{display:table-header-group}nav{display:none}summary{list-style:none;font-weight:600}
details::details-content{content-visibility:visible;block-size:auto}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
)";

/// ":root{color-scheme:light;--bg:#fff;...}"
std::string colors_rule(const std::string& scheme, bool dark, bool print) {
  std::string text = ":root{color-scheme:" + scheme;
  for (const StyleColor& one : style_colors()) {
    const std::string name = one.name;
    // Grey is for screens.
    const std::string color = print && name == "fg"     ? "#000"
                              : print && name == "soft" ? "#444"
                              : dark                    ? one.dark
                                                        : one.light;
    text += ";--" + name + ":" + color;
  }
  return text + "}\n";
}

/// The style of a report: light, dark, and print on A4.
std::string report_style() {
  return "\n" + colors_rule("light dark", false, false) + "@media (prefers-color-scheme:dark){" +
         colors_rule("dark", true, false) + "}" + page_style + picture_style +
         "@media print{@page{size:A4;margin:15mm}\n" + colors_rule("light", false, true) +
         print_style + "}\n";
}

constexpr std::size_t max_listing = 20000;  ///< characters of a scenario or of parameters

std::string heading(const char* level, const std::string& id, const std::string& text) {
  return element(level, {{"id", id}}, escaped(text)) + "\n";
}

std::string listing(const std::string& title, const std::string& text) {
  return element("details", element("summary", escaped(title)) +
                                element("pre", escaped(shortened(text, max_listing)))) +
         "\n";
}

/// "Plots 1 to 3", "Plot 4".
std::string plots_text(std::size_t first, std::size_t last) {
  if (first == last) return "Plot " + std::to_string(first);
  return "Plots " + std::to_string(first) + (last == first + 1 ? " and " : " to ") +
         std::to_string(last);
}

/// Commands, a line each.
std::string commands_html(const std::string& commands) {
  if (commands.empty()) return "The results do not say by which command.";
  std::string html;
  std::istringstream lines(commands);
  for (std::string line; std::getline(lines, line);) {
    html += (html.empty() ? "" : "<br/>") + code_element(line);
  }
  return html;
}

/// What made the results, and the commands that make its plots again.
std::string provenance_html(const Source& source, std::size_t figures, std::size_t first) {
  const Value& made_by = member(source.document, "headlab");
  Table table{.caption = "What made the results", .headings = {"what", "value"}};
  for (const auto& [key, name] :
       {std::pair("version", "version of headlab"), std::pair("git", "commit"),
        std::pair("backend", "backend"), std::pair("simd", "vector instructions"),
        std::pair("device", "device"), std::pair("seed", "seed")}) {
    const Value& value = member(made_by, key);
    if (!value.is<Value::Null>()) table.rows.push_back({name, words_of(value)});
  }
  const std::string id = text_of(member(source.document, "results_id"));
  if (!id.empty()) table.rows.push_back({"identifier of results", id});
  const Value& complete = member(source.document, "complete");
  if (complete.is<bool>()) {
    table.rows.push_back({"work complete", is_true(complete) ? "yes" : "no: it ended early"});
  }
  std::string text = table_element(table);
  if (figures > 0) {
    text += element("p", "Commands that make the plots again:") +
            element("dl", element("dt", plots_text(first, first + figures - 1)) +
                              element("dd", commands_html(source.command))) +
            "\n";
  }
  if (!source.scenario_text.empty()) text += listing("The scenario file", source.scenario_text);
  const Value::Array& conditions = source.shown_conditions();
  if (!conditions.empty()) {
    const Value& parameters = member(conditions.front(), "parameters");
    // A run with targets ends where they are met.
    const double most = number_of(member(member(source.document, "until"), "most"));
    text += listing(std::string("Parameters as given") +
                        (conditions.size() == 1 ? "" : ", first condition") +
                        (most > 0 ? " (at most " + count_text(most) + " replicates)" : ""),
                    to_json(parameters, {.lines = 2, .indent = 1}));
  }
  return text;
}

std::string thinned_html(const Source& source) {
  const std::size_t shown = source.shown_conditions().size();
  if (shown >= source.conditions) return "";
  return element("p", {{"class", "note"}},
                 "The report is of " + grouped(shown) + " of " +
                     counted(source.conditions, "condition") + ", from the first to the last.") +
         "\n";
}

/// Says that a run ended early, and how far it was.
std::string unfinished_html(const Source& source) {
  const Value& complete = member(source.document, "complete");
  if (!complete.is<bool>() || is_true(complete)) return "";
  std::string text = "These results are of work that ended early";
  double least = HUGE_VAL, wanted = 0;
  for (const Value& condition : source.shown_conditions()) {
    least = std::min(least, number_of(member(condition, "replicates")));
    wanted = std::max(
        wanted, number_of(member(member(member(condition, "parameters"), "run"), "replicates")));
  }
  if (least < wanted) {
    const auto count = [](double number) { return grouped(static_cast<std::uint64_t>(number)); };
    const bool has_targets = member(source.document, "until").is<Value::Members>();
    text += ": of " + std::string(has_targets ? "at most " : "") + count(wanted) +
            " training sets " + (source.conditions > 1 ? "some conditions have " : "there are ") +
            count(least);
  }
  return element("p", element("strong", prose(text + "."))) + "\n";
}

/// One source with its sections; `figures` counts those of the page. A source that has the page to
/// itself needs no heading besides the page's.
std::string source_html(const Source& source, const std::string& id, std::size_t& figures,
                        bool alone) {
  const char* level = alone ? "h2" : "h3";
  std::string text = (alone ? "" : heading("h2", id, source_title(source))) +
                     unfinished_html(source) + thinned_html(source);
  const std::size_t first = figures + 1;
  const std::vector<Picture> all = figures_of(source);
  if (all.empty()) text += element("p", "The results hold nothing to draw yet.") + "\n";
  // What a reader came for stands first.
  if (!all.empty()) text += figure_html(all.front(), ++figures);
  if (const std::string survives = survives_html(source); !survives.empty()) {
    text += heading(level, id + "-survives", "What survives") + survives;
  }
  const std::vector<Section> before = sections_before_figures(source);
  for (const Section& section : before) {
    text += heading(level, id + "-" + std::to_string(&section - before.data() + 1), section.title) +
            section.html;
  }
  for (std::size_t i = 1; i < all.size(); ++i) text += figure_html(all[i], ++figures);
  for (const Section& section : sections_behind_figures(source)) {
    text += heading(level, id + "-verdicts", section.title) + section.html;
  }
  return element("section", {{"aria-labelledby", alone ? "title" : id}},
                 text + heading(level, id + "-provenance", "Provenance") +
                     provenance_html(source, all.size(), first)) +
         "\n";
}

}  // namespace

std::string report_page(const std::vector<Source>& sources) {
  const std::string title =
      sources.size() == 1 ? source_title(sources.front()) : "Report of headlab";
  const std::string head =
      empty_element("meta", {{"charset", "utf-8"}}) + "\n" +
      empty_element("meta", {{"http-equiv", "Content-Security-Policy"},
                             {"content", "default-src 'none'; style-src 'unsafe-inline'"}}) +
      "\n" + empty_element("meta", {{"name", "viewport"}, {"content", "width=device-width"}}) +
      "\n" + empty_element("meta", {{"name", "generator"}, {"content", report_generator}}) + "\n" +
      element("title", escaped(title)) + "\n" + element("style", report_style()) + "\n";
  std::string body = heading("h1", "title", title);
  std::string contents, parts;
  std::size_t figures = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::string id = "part-" + std::to_string(i + 1);
    contents +=
        element("li", element("a", {{"href", "#" + id}}, escaped(source_title(sources[i]))));
    parts += source_html(sources[i], id, figures, sources.size() == 1);
  }
  if (sources.size() > 1) {
    body += element("nav", {{"aria-label", "Contents"}}, element("ol", contents)) + "\n";
  }
  return "<!DOCTYPE html>\n" +
         element("html", {{"lang", "en"}, {"xmlns", "http://www.w3.org/1999/xhtml"}},
                 element("head", "\n" + head) + "\n" +
                     element("body", "\n" + body + element("main", "\n" + parts) + "\n") + "\n") +
         "\n";
}

namespace {

/// True for a report, which says so in its head, and for an empty file.
bool is_report(const std::string& path) {
  constexpr std::size_t head = 1024;
  const std::string text = first_bytes(path, head);
  return text.empty() || text.find(report_generator) != std::string::npos;
}

}  // namespace

void require_report_writable(const std::string& option, const std::string& path,
                             const std::vector<std::string>& inputs) {
  if (path.empty() || path == "-") {
    throw InvalidInput(option + ": needs the name of a file - write " + option + " report.html");
  }
  const std::string ending = std::filesystem::path(path).extension().string();
  for (const char* const other : {".pdf", ".svg", ".png", ".md", ".tex", ".csv"}) {
    if (ending != other) continue;
    throw InvalidInput(option + ": " + one_line(path) +
                       ": a report is HTML - end its name in .html; a browser prints it as PDF");
  }
  require_no_input(option, path, inputs);
  require_writable(option, path);
  std::error_code none;
  if (std::filesystem::is_regular_file(path, none) && !is_report(path)) {
    throw InvalidInput(option + ": " + one_line(path) +
                       ": is there already and is not a report - choose another place");
  }
}

void write_report(const std::string& path, const std::vector<Source>& sources) {
  write_atomically(path, report_page(sources));
}

}  // namespace headlab::tools
