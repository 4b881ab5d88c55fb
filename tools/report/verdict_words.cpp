// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "kernels/counted.h"
#include "tools/report/figure.h"
#include "tools/report/markup.h"
#include "tools/report/sections.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_counterexamples = 4;  ///< of a claim

/// Verdicts of one form in one setting, which differ in their index.
struct Reading {
  std::string form, setting, statement, outcome;
  std::vector<std::string> indices;
  std::vector<std::string> scenarios;  ///< where others of these words have another outcome
};

/// A verdict with the scenario that tells it from others of its words, or nothing.
struct Refuted {
  const Value* verdict;
  std::string scenario;
};

struct ClaimRow {
  std::string claim;
  std::vector<Reading> readings = {};
  std::vector<Refuted> refuted = {};
  std::size_t unexpected = 0;
};

bool holds(const std::string& outcome) {
  return outcome == "supported" || outcome == "identity";
}

std::vector<ClaimRow> claim_rows(const Value& document) {
  std::vector<ClaimRow> rows;
  const Value::Array& verdicts = items_of(member(document, "claims"));
  const std::vector<std::string> scenarios = scenarios_that_tell_apart(verdicts, verdict_name);
  std::map<std::string, std::set<std::string>> outcomes;
  for (const Value& verdict : verdicts) {
    outcomes[verdict_name(verdict)].insert(text_of(member(verdict, "verdict")));
  }
  for (const Value& verdict : verdicts) {
    const std::string claim = text_of(member(verdict, "claim"));
    auto row = std::ranges::find(rows, claim, &ClaimRow::claim);
    if (row == rows.end()) row = rows.insert(rows.end(), {claim});
    const std::string outcome = text_of(member(verdict, "verdict"));
    const std::string expected = text_of(member(verdict, "expected"));
    const std::string& scenario = scenarios[static_cast<std::size_t>(&verdict - verdicts.data())];
    if (outcome == "refuted") row->refuted.push_back({&verdict, scenario});
    // Work that ended early says nothing about what it did not reach.
    const Value& complete = member(verdict, "complete");
    const bool reached = !complete.is<bool>() || is_true(complete);
    if (!expected.empty() && expected != outcome && reached) ++row->unexpected;
    const Reading reading{text_of(member(verdict, "form")),
                          setting_text(verdict),
                          text_of(member(verdict, "statement")),
                          outcome,
                          {},
                          {}};
    auto same = std::ranges::find_if(row->readings, [&](const Reading& one) {
      return one.form == reading.form && one.setting == reading.setting &&
             one.statement == reading.statement && one.outcome == outcome;
    });
    if (same == row->readings.end()) same = row->readings.insert(row->readings.end(), reading);
    const std::string index = text_of(member(verdict, "index"));
    if (!index.empty() && std::ranges::find(same->indices, index) == same->indices.end()) {
      same->indices.push_back(index);
    }
    if (outcomes[verdict_name(verdict)].size() > 1 &&
        std::ranges::find(same->scenarios, scenario) == same->scenarios.end()) {
      same->scenarios.push_back(scenario);
    }
  }
  return rows;
}

/// The readings that `wanted` takes, an item each; statements that repeat are said once.
template <class Wanted>
std::string readings_html(const ClaimRow& row, const Wanted& wanted) {
  std::string items, last;
  for (const Reading& one : row.readings) {
    if (!wanted(one.outcome)) continue;
    std::string text = element("strong", prose(one.form));
    std::string more;
    for (const std::string& index : one.indices) more += (more.empty() ? "" : ", ") + index;
    if (!more.empty()) text += " by " + prose(more);
    if (!one.setting.empty()) text += " (" + prose(one.setting) + ")";
    std::string in;
    for (const std::string& name : one.scenarios) in += (in.empty() ? " in " : ", ") + name;
    text += prose(in);
    if (!holds(one.outcome) && one.outcome != "refuted") text += ", " + prose(one.outcome);
    if (one.outcome == "identity") text += ", by algebra";
    // A claim of a user's own may say no more than its name.
    if (one.statement != last && one.statement != one.form + ".") {
      text += ": " + prose(one.statement);
    }
    last = one.statement;
    items += element("li", text);
  }
  return items.empty() ? "–" : element("ul", items);
}

/// The command that shows every counterexample of a claim; empty where there are several.
std::string common_command(const ClaimRow& row) {
  const std::string first = text_of(member(*row.refuted.front().verdict, "replay"));
  return std::ranges::all_of(
             row.refuted,
             [&](const Refuted& one) { return text_of(member(*one.verdict, "replay")) == first; })
             ? first
             : "";
}

/// \param of_all  a command that stands before them
std::string counterexamples_html(const ClaimRow& row, const std::string& of_all) {
  // Verdicts that differ in their index alone have one counterexample.
  struct Contradiction {
    std::string form, setting, indices, text;
  };
  std::vector<Contradiction> all;
  for (const auto& [verdict, scenario] : row.refuted) {
    const std::string replay = text_of(member(*verdict, "replay"));
    const std::string index = text_of(member(*verdict, "index"));
    const std::string counterexample = counterexample_text(*verdict);
    const std::string setting = setting_text(*verdict);
    const std::string of = text_of(member(member(*verdict, "effect"), "of"));
    const Contradiction one{
        text_of(member(*verdict, "form")),
        (setting.empty() ? "" : " (" + setting + ")") + in_scenario(scenario), index,
        prose(counterexample.empty()
                  ? decisive_text(*verdict)
                  : (of.empty() ? "" : comparison_words(of) + ": ") + counterexample) +
            (replay.empty() || replay == of_all ? "" : "; " + code_element(replay))};
    const auto same = std::ranges::find_if(all, [&](const Contradiction& other) {
      return other.form == one.form && other.setting == one.setting && other.text == one.text;
    });
    if (same == all.end()) {
      all.push_back(one);
    } else if (!index.empty()) {
      same->indices += ", " + index;
    }
  }
  std::string items;
  for (std::size_t i = 0; i < std::min(all.size(), max_counterexamples); ++i) {
    const Contradiction& one = all[i];
    items += element("li", prose(one.form) + (one.indices.empty() ? "" : " by ") +
                               prose(one.indices) + prose(one.setting) + ": " + one.text);
  }
  if (all.size() > max_counterexamples) {
    items += element("li", "and " + std::to_string(all.size() - max_counterexamples) +
                               " more among the verdicts below");
  }
  return element("ul", items);
}

/// "holds in ..." of "hold in ..."
std::string singular(const std::string& words) {
  if (words.starts_with("are ")) return "is " + words.substr(4);
  const std::size_t verb = std::min(words.find(' '), words.size());
  return words.substr(0, verb) + "s" + words.substr(verb);
}

}  // namespace

std::string reading_text(const Value& verdict) {
  std::string text = text_of(member(verdict, "form"));
  const std::string index = text_of(member(verdict, "index"));
  if (!index.empty()) text += (text.empty() ? "" : ", ") + index;
  return text;
}

std::string verdict_name(const Value& verdict) {
  const std::string setting = setting_text(verdict);
  return text_of(member(verdict, "claim")) + ": " + reading_text(verdict) +
         (setting.empty() ? "" : " (" + setting + ")");
}

std::string in_scenario(const std::string& scenario) {
  return scenario.empty() ? "" : " in " + scenario;
}

std::string setting_text(const Value& verdict) {
  const std::string kernel = text_of(member(verdict, "kernel"));
  std::string text = kernel == "varies" ? "kernels vary" : kernel;
  std::ranges::replace(text, '_', ' ');
  const Value& signal = member(verdict, "signal");
  if (!text.empty() && signal.is<bool>()) {
    text += is_true(signal) ? ", signal" : ", noise alone";
  }
  if (const std::string stages = text_of(member(verdict, "stages")); !stages.empty()) {
    text += (text.empty() ? "" : ", ") + stages;
  }
  return text;
}

std::vector<std::string> scenarios_that_tell_apart(
    const Value::Array& verdicts, const std::function<std::string(const Value&)>& text_of_verdict) {
  std::map<std::string, std::size_t> count;
  for (const Value& verdict : verdicts) ++count[text_of_verdict(verdict)];
  std::vector<std::string> names;
  for (const Value& verdict : verdicts) {
    const std::filesystem::path file = text_of(member(verdict, "scenario"));
    names.push_back(count[text_of_verdict(verdict)] > 1 ? file.stem().string() : "");
  }
  return names;
}

std::string effect_text(const Value& verdict) {
  const Value& effect = member(verdict, "effect");
  return effect.is<Value::Members>() ? estimate_text(estimate_of(effect)) : "–";
}

double margin_of(const Value& verdict) {
  const std::string decisive = text_of(member(member(verdict, "effect"), "of"));
  for (const Value& effect : items_of(member(verdict, "effects"))) {
    if (text_of(member(effect, "of")) == decisive) return number_of(member(effect, "margin"));
  }
  return number_of(member(verdict, "margin"));
}

std::string allowed_text(const Value& verdict) {
  const double margin = margin_of(verdict);
  if (std::isnan(margin)) return "–";
  if (text_of(member(member(verdict, "effect"), "zone")) != "one-sided") {
    return "± " + shown_number(margin);
  }
  return margin > 0 ? "≥ −" + shown_number(margin) : "≥ 0";
}

std::string replicates_text(const Value& verdict) {
  const Value& own = member(member(verdict, "effect"), "replicates");
  const double replicates = number_of(own.number() ? own : member(verdict, "replicates"));
  return replicates == 0 ? "none: computed" : axis_number(replicates);
}

std::string decisive_text(const Value& verdict) {
  const std::string of = text_of(member(member(verdict, "effect"), "of"));
  std::string compared;
  const bool is_shown = member(verdict, "certificate").is<Value::Members>();  // with its errors
  for (const Value& effect : items_of(member(verdict, "effects"))) {
    if (is_shown) break;
    const double first = number_of(member(effect, "observed"));
    const double second = number_of(member(effect, "reference"));
    if (text_of(member(effect, "of")) != of || std::isnan(first) || std::isnan(second)) continue;
    compared = ", " + shown_number(first) + " against " + shown_number(second);
    break;
  }
  return "effect " + effect_text(verdict) + " where " + allowed_text(verdict) + " is allowed" +
         (of.empty() ? "" : ", of " + comparison_words(of)) + compared;
}

std::string outcome_text(const Value& verdict) {
  const std::string outcome = text_of(member(verdict, "verdict"));
  const std::string expected = text_of(member(verdict, "expected"));
  if (expected.empty() || expected == outcome) return outcome;
  return outcome + " (expected " + expected + ")";
}

std::string counterexample_text(const Value& verdict) {
  const Value& certificate = member(verdict, "certificate");
  if (!certificate.is<Value::Members>()) return "";
  std::string text;
  const Value::Array* both = &items_of(member(certificate, "values"));
  // Before 2026-11-24 a counterexample was of the MSE alone, under this name.
  if (both->empty()) both = &items_of(member(certificate, "mse"));
  std::vector<std::string> labels;
  for (const Value& name : items_of(member(certificate, "figures"))) {
    labels.push_back(comparison_words(text_of(name)));
  }
  if (labels.size() != 2) labels = {"MSE", "MSE"};
  if (both->size() == 2) {
    text = labels[0] + " " + estimate_text(estimate_of((*both)[0])) + " against " +
           (labels[0] == labels[1] ? "" : labels[1] + " ") + estimate_text(estimate_of((*both)[1]));
  }
  const Estimate difference = estimate_of(member(certificate, "difference"));
  if (std::isfinite(difference.value)) text += ", difference " + estimate_text(difference);
  const double z = number_of(member(certificate, "z"));
  if (!std::isnan(z)) text += (text.empty() ? "z = " : ", z = ") + shown_number(z, 3);
  for (const auto& [name, location, values] : members_of(member(certificate, "closed_form"))) {
    const Value::Array& pair = items_of(values);
    if (pair.size() != 2) continue;
    // As many digits as the words of the comparison have.
    text += "; " + name + " " + axis_number(number_of(pair[0])) + " against " +
            axis_number(number_of(pair[1]));
  }
  return text.empty() ? "one was found" : text;
}

std::string survives_html(const Source& source) {
  const std::vector<ClaimRow> rows = claim_rows(source.document);
  if (rows.empty()) return "";
  std::string body;
  std::size_t whole = 0, partly = 0, none = 0, open = 0;
  for (const ClaimRow& row : rows) {
    const auto count = [&](auto&& wanted) {
      return std::ranges::count_if(row.readings,
                                   [&](const Reading& one) { return wanted(one.outcome); });
    };
    const auto stands = count(holds);
    const auto falls = count([](const std::string& outcome) { return outcome == "refuted"; });
    ++(falls == 0 && stands > 0  ? whole
       : falls > 0 && stands > 0 ? partly
       : falls > 0               ? none
                                 : open);
    const auto is_open = [](const std::string& outcome) {
      return !holds(outcome) && outcome != "refuted";
    };
    std::string failing =
        readings_html(row, [](const std::string& outcome) { return outcome == "refuted"; });
    if (count(is_open) > 0) {
      if (falls == 0) failing.clear();
      failing += element("p", "Open:") + readings_html(row, is_open);
    }
    std::string name = prose(row.claim);
    if (row.unexpected > 0) {
      name += element("p", {{"class", "note"}},
                      std::to_string(row.unexpected) + " not as expected beforehand");
    }
    body += element("tr", element("th", {{"scope", "row"}}, name) +
                              element("td", readings_html(row, holds)) + element("td", failing)) +
            "\n";
    if (!row.refuted.empty()) {
      const std::string command = common_command(row);
      body +=
          element(
              "tr",
              element("td", {{"colspan", "3"}},
                      element("p",
                              std::string(row.refuted.size() == 1 ? "Counterexample"
                                                                  : "Counterexamples") +
                                  (command.empty() ? ":" : ", by " + code_element(command) + ":")) +
                          counterexamples_html(row, command))) +
          "\n";
    }
  }
  std::string headings;
  for (const char* heading : {"claim", "holds as", "fails as, or is open as"}) {
    headings += element("th", {{"scope", "col"}}, heading);
  }
  std::string counts;
  for (const auto& [number, words] :
       {std::pair(whole, "hold in every reading"), std::pair(partly, "hold in some readings only"),
        std::pair(none, "fail in every reading"), std::pair(open, "are open")}) {
    if (number == 0) continue;
    counts += (counts.empty() ? "" : ", ") + std::to_string(number) + " " +
              (number == 1 ? singular(words) : words);
  }
  return element("p", "Of " + counted(rows.size(), "claim") + ": " + counts + ".") +
         element(
             "div", {{"class", "scroll"}},
             element("table", {{"class", "claims"}},
                     element("thead", element("tr", headings)) + element("tbody", "\n" + body))) +
         "\n";
}

}  // namespace headlab::tools
