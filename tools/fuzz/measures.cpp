// SPDX-License-Identifier: Apache-2.0
// A measure of the user's own is refused, or has figures that are found by their names; the same of
// the targets of --until, which begin with "until ".
#include "engine/moments/measures.h"

#include <utility>

#include "engine/files/error.h"
#include "engine/moments/estimates.h"
#include "engine/moments/measured_terms.h"
#include "engine/moments/precision.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {
namespace {

constexpr std::string_view of_until = "until ";
constexpr std::size_t sample_queries = 2, sample_heads = 2, sample_nodes = 3;

Jackknifed sample(double value) {
  Jackknifed made(value);
  for (std::size_t j = 0; j < sample_nodes; ++j) {
    made.leave_one_out.push_back(value + 0.01 * static_cast<double>(j));
  }
  return made;
}

ErrorTerms<Jackknifed> sample_terms() {
  ErrorTerms<Jackknifed> terms;
  NumberList<Jackknifed> averages;
  terms.fields(averages);
  for (const auto& one : averages.all) *one.number = sample(0.5);
  terms.queries.resize(sample_queries);
  for (QueryErrorTerms<Jackknifed>& query : terms.queries) {
    query.mse = sample(1);
    query.head_bias.assign(sample_heads, sample(-0.25));
    query.head_covariance.assign(sample_heads * sample_heads, sample(2));
  }
  return terms;
}

void read_until(const std::string& text) {
  const std::vector<PrecisionTarget> targets = parse_until(text);
  require(!targets.empty(), "no target");
  require(parse_until(until_text(targets)) == targets, "other targets of their own text");
}

void read_formula(const std::string& text) {
  const auto entry = [](const char* name, Value value) {
    return Value::Entry{name, {}, std::move(value)};
  };
  const Value table(Value::Members{entry("before", Value("mse / 2", Location())),
                                   entry("made", Value(text, Location()))},
                    Location());
  const Measures measures =
      read_measures(Value(Value::Members{entry("measures", table)}, Location()));
  require(measures.size() == 2, "another number of measures");
  for (const FigureName& part : measures[1]->parts) {
    require(parse_figure("fuzz", part.text(), {"before"}) == part, "a name that is not its own");
  }
  ErrorTerms<Jackknifed> terms = sample_terms();
  add_measures(terms, measures, std::vector<double>(sample_nodes, 8));
  require(terms.measures.size() == 2, "a measure without a number");
  const Measured<Jackknifed>& made = terms.measures[1];
  require(made.number.leave_one_out.empty() || made.number.leave_one_out.size() == sample_nodes,
          "a jackknife over other nodes");
  require(!(made.divisor_error < 0), "a standard error below 0");
  std::vector<bool> seen = measured_queries(measures, sample_queries);
  require(seen.size() == sample_queries, "queries of another number");
}

void read_measure(const std::string& bytes) {
  if (bytes.starts_with(of_until)) return read_until(bytes.substr(of_until.size()));
  read_formula(bytes);
}

std::vector<std::string> words_of_figures() {
  std::vector<std::string> words = {"before", "[0]", "[1]", "[0,1]", "[1,0,1]", "until ",
                                    "=1%",    "@#3", ",",   "/",     "sqrt(",   "difference_"};
  for (const FigureKind& kind : figure_kinds()) words.push_back(kind.name);
  return words;
}

}  // namespace

const Target reader::measures = {"measures", read_measure, words_of_figures};

}  // namespace headlab::fuzz
