// SPDX-License-Identifier: Apache-2.0
#include "tools/report/source.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/json_reader.h"
#include "engine/files/words.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_precision_curves = 5;

/// Counts the conditions of a summary without keeping them.
std::size_t count_conditions(const std::string& text) {
  std::size_t count = 0;
  bool inside = false;
  const auto keep = [&](int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth == 1 && event == Json::parse_event_t::key) inside = parsed == "conditions";
    if (inside && depth == 2 && event == Json::parse_event_t::object_start) ++count;
    return depth < 2;
  };
  const Json without_them = Json::parse(text, keep, false);
  if (without_them.is_discarded()) return 0;
  return count;
}

/// Parses a document in which only the conditions of `kept` stay.
Json parse_thinned(const std::string& text, const std::vector<std::size_t>& kept) {
  std::size_t number = 0, next = 0;
  bool inside = false;
  return Json::parse(
      text,
      [&](int depth, Json::parse_event_t event, const Json& parsed) {
        if (depth == 1 && event == Json::parse_event_t::key) inside = parsed == "conditions";
        if (!inside || depth != 2 || event != Json::parse_event_t::object_end) return true;
        const bool keep = next < kept.size() && kept[next] == number++;
        if (keep) ++next;
        return keep;
      },
      false);
}

std::optional<SourceKind> kind_of(const Json& document) {
  if (!document.is_object() || !member(document, "headlab").is_object()) return std::nullopt;
  // A data set is no result: its manifest alone has a version of the format.
  if (document.contains("format_version")) return std::nullopt;
  if (document.contains("conditions")) {
    return document.contains("results_id") && member(document, "results_id").is_null()
               ? SourceKind::theory
               : SourceKind::run;
  }
  if (document.contains("claims")) return SourceKind::verdicts;
  if (document.contains("cells")) return SourceKind::map;
  // Losses of compressed heads have layers too, and no figures.
  if (document.contains("layers") && document.contains("random_sets")) return SourceKind::heads;
  if (document.contains("allocations") || document.contains("studies")) {
    return SourceKind::allocation;
  }
  return std::nullopt;
}

}  // namespace

const Json& Source::shown_conditions() const {
  return member(document, "conditions");
}

std::optional<Source> read_document(const std::string& text, const std::string& file) {
  Source source{.document = {}};
  // Only a text this long can have so many conditions.
  constexpr std::size_t min_bytes = 500;
  const bool readable = !is_nested_too_deeply(text);
  const bool long_enough = readable && text.size() > max_conditions * min_bytes;
  const std::size_t count = long_enough ? count_conditions(text) : 0;
  if (readable) {
    source.document = count > max_conditions ? parse_thinned(text, spread(count, max_conditions))
                                             : Json::parse(text, nullptr, false);
  }
  if (!readable || source.document.is_discarded()) {
    throw InvalidInput(
        file +
        ": is not JSON, or is damaged - give a folder of --out or a file of --json, or make "
        "it again");
  }
  const std::optional<SourceKind> kind = kind_of(source.document);
  if (!kind) return std::nullopt;
  source.kind = *kind;
  const bool of_conditions = *kind == SourceKind::run || *kind == SourceKind::theory;
  if (of_conditions && !source.shown_conditions().is_array()) {
    throw InvalidInput(file + ": its conditions are no list - make it again");
  }
  source.conditions = std::max(count, source.shown_conditions().size());
  if (source.kind == SourceKind::verdicts || source.kind == SourceKind::run) return source;
  source.command = text_of(member(source.document, "replay"));
  if (source.kind == SourceKind::heads) {
    const double seed = number_of(member(member(source.document, "headlab"), "seed"));
    source.command = "headlab hdi " + shell_word(text_of(member(source.document, "file")));
    if (seed > 0) source.command += " --seed " + number_text(seed);
  }
  return source;
}

std::vector<std::size_t> spread(std::size_t count, std::size_t most) {
  std::vector<std::size_t> all;
  if (count <= most || most < 2) {
    for (std::size_t i = 0; i < std::min(count, most); ++i) all.push_back(i);
    return all;
  }
  for (std::size_t i = 0; i < most; ++i) all.push_back(i * (count - 1) / (most - 1));
  return all;
}

std::vector<std::size_t> precision_conditions(std::size_t count) {
  return spread(count, max_precision_curves);
}

const Json& member(const Json& object, std::string_view key) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(std::string(key));
  return found == object.end() ? none : *found;
}

double number_of(const Json& json) {
  return json.is_number() ? json.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::string text_of(const Json& json) {
  return json.is_string() ? json.get<std::string>() : "";
}

Estimate estimate_of(const Json& json) {
  if (json.is_number()) return {.value = number_of(json)};
  return {.value = number_of(member(json, "value")), .mcse = number_of(member(json, "mcse"))};
}

std::vector<const Json*> items_of(const Json& json) {
  std::vector<const Json*> items;
  if (!json.is_array()) return items;
  for (const Json& item : json) items.push_back(&item);
  return items;
}

}  // namespace headlab::tools
