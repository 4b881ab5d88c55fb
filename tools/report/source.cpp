// SPDX-License-Identifier: Apache-2.0
#include "tools/report/source.h"

#include <algorithm>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/words.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_precision_curves = 5;

/// The members of a document in their order, and of its conditions those for which keep(number) is
/// true.
template <class Keep>
std::optional<Value> parse_document(const std::string& text, const Keep& keep) {
  return parse_json(text, MemberOrder::of_file, [&](std::string_view key, std::size_t item) {
    return key != "conditions" || keep(item);
  });
}

}  // namespace

std::optional<SourceKind> kind_of(const Value& document) {
  const auto has = [&](const char* key) { return document.find(key) != nullptr; };
  if (!member(document, "headlab").is<Value::Members>()) return std::nullopt;
  // A data set is no result: its manifest alone has a version of the format.
  if (has("format_version")) return std::nullopt;
  if (has("conditions")) {
    const Value* id = document.find("results_id");
    return id != nullptr && id->is<Value::Null>() ? SourceKind::theory : SourceKind::run;
  }
  if (has("claims")) return SourceKind::verdicts;
  if (has("cells")) return SourceKind::map;
  // Losses of compressed heads have layers too, and no figures.
  if (has("layers") && has("random_sets")) return SourceKind::heads;
  if (has("layers") && has("words")) return SourceKind::measured;
  if (has("curves") && has("over")) return SourceKind::curves;
  if (has("allocations") || has("studies")) return SourceKind::allocation;
  return std::nullopt;
}

const Value::Array& Source::shown_conditions() const {
  return items_of(member(document, "conditions"));
}

bool Source::is_study_of_depth() const {
  return !shown_conditions().empty() &&
         member(shown_conditions().front(), "layers").is<Value::Array>();
}

std::optional<Source> read_document(const std::string& text, const std::string& file) {
  Source source{.document = {}};
  // Only a text this long can have so many conditions.
  constexpr std::size_t min_bytes = 500;
  std::size_t count = 0;
  if (text.size() > max_conditions * min_bytes) {
    parse_document(text, [&](std::size_t number) {
      count = number + 1;
      return false;
    });
  }
  const std::vector<std::size_t> kept = spread(count, max_conditions);
  std::optional<Value> document = parse_document(text, [&](std::size_t number) {
    return count <= max_conditions || std::ranges::binary_search(kept, number);
  });
  if (!document) {
    throw InvalidInput(file + ": is not JSON" + end_of_json(text) +
                       ", or is damaged - give a folder of --out or a file of --json, or make "
                       "it again");
  }
  source.document = std::move(*document);
  const std::optional<SourceKind> kind = kind_of(source.document);
  if (!kind) return std::nullopt;
  source.kind = *kind;
  const bool of_conditions = *kind == SourceKind::run || *kind == SourceKind::theory;
  if (of_conditions && !member(source.document, "conditions").is<Value::Array>()) {
    throw InvalidInput(file + ": its conditions are not a list - make it again");
  }
  source.conditions = std::max(count, source.shown_conditions().size());
  if (source.kind == SourceKind::run) return source;
  if (source.kind == SourceKind::verdicts) {
    std::vector<std::string> commands;
    for (const Value& verdict : items_of(member(source.document, "claims"))) {
      const std::string command = text_of(member(verdict, "replay"));
      if (command.empty() || std::ranges::count(commands, command) > 0) continue;
      commands.push_back(command);
      source.command += (source.command.empty() ? "" : "\n") + command;
    }
    return source;
  }
  source.command = text_of(member(source.document, "replay"));
  if (source.kind == SourceKind::heads || source.kind == SourceKind::measured) {
    const double seed = number_of(member(member(source.document, "headlab"), "seed"));
    source.command = (source.kind == SourceKind::heads ? "headlab hdi " : "headlab heads ") +
                     shell_word(text_of(member(source.document, "file")));
    if (seed > 0) source.command += " --seed " + number_text(seed);
  }
  if (!source.command.empty() && source.command.find("headlab report") == std::string::npos) {
    source.command += " --json FILE && headlab report FILE";
  }
  return source;
}

void keep_conditions(Source& source, const std::vector<std::size_t>& numbers) {
  Value::Array kept;
  std::vector<PrecisionCurve> precision;
  for (const std::size_t number : numbers) {
    for (PrecisionCurve& curve : source.precision) {
      if (curve.condition != number) continue;
      precision.push_back({kept.size(), std::move(curve.points)});
    }
    kept.push_back(source.shown_conditions().at(number));
  }
  source.document.find("conditions")->data = std::move(kept);
  source.precision = std::move(precision);
  source.conditions = numbers.size();
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

Estimate estimate_of(const Value& json) {
  if (json.number()) return {.value = number_of(json)};
  return {.value = number_of(member(json, "value")), .mcse = number_of(member(json, "mcse"))};
}

}  // namespace headlab::tools
