// SPDX-License-Identifier: Apache-2.0
#include "validation/difference/pairing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/files/enumerators.h"
#include "engine/files/json_reader.h"
#include "engine/moments/estimates.h"
#include "engine/moments/layer_estimates.h"
#include "engine/moments/measured_terms.h"
#include "engine/moments/measures.h"
#include "engine/moments/moment_tree.h"
#include "engine/results/stored_figures.h"

namespace headlab {
namespace {

using Samples = ErrorTerms<Jackknifed>;

/// Nodes of one query.
std::vector<Node> nodes_of_query(const MomentLayout& layout, const std::vector<Node>& nodes,
                                 std::size_t query) {
  const auto part = [query](const std::vector<double>& all, std::size_t size) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(query * size);
    return std::vector<double>(from, from + static_cast<std::ptrdiff_t>(size));
  };
  std::vector<Node> of_query(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Moments& moments = nodes[i].moments;
    of_query[i] = {nodes[i].first, {}};
    of_query[i].moments.count = moments.count;
    of_query[i].moments.mean = part(moments.mean, layout.per_query());
    of_query[i].moments.comoment = part(moments.comoment, layout.comoments_per_query());
  }
  return of_query;
}

Measures measures_of(const StoredCondition& stored) {
  return read_measures(parse_json(stored.parameters).value_or(Value()));
}

/// The figures of a condition, one query at a time.
class QuerySamples {
 public:
  explicit QuerySamples(StoredCondition stored)
      : stored_(std::move(stored)), single_(stored_.layout), measures_(measures_of(stored_)) {
    single_.queries = 1;
    mean_.queries.resize(queries());
    is_measured_ = measured_queries(measures_, queries());
  }

  std::size_t queries() const { return static_cast<std::size_t>(stored_.layout.queries); }

  /// Figures at a query, with its own averages; its number in names is 0.
  JackknifedEstimates at(std::size_t query) {
    const MomentTree tree(single_, nodes_of_query(stored_.layout, stored_.nodes, query));
    std::optional<ControlUse> use;
    if (stored_.controls) use = stored_.controls->use.of_query(query, queries());
    JackknifedEstimates samples = jackknifed_estimates(
        tree, stored_.head_weights, {&stored_.truth.at(query), 1}, use ? &*use : nullptr);
    const auto terms = all_numbers<Jackknifed>(static_cast<Samples&>(samples));
    const auto sums = all_numbers<Jackknifed>(mean_);
    if (is_measured_[query]) mean_.queries[query] = samples.queries.at(0);
    const Jackknifed share = 1 / static_cast<double>(queries());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      *sums[i] = query == 0 ? share * *terms[i] : *sums[i] + share * *terms[i];
    }
    return samples;
  }

  /// Averages over the queries, once all were asked for.
  /// \param counts  [nodes], replicates of each
  Samples averages(const std::vector<double>& counts) const {
    Samples mean = mean_;
    for (const Ratio<Jackknifed>& ratio : ratios<Jackknifed>) {
      mean.*ratio.figure = mean.*ratio.top / mean.*ratio.bottom;
      if (ratio.one_minus != nullptr) mean.*ratio.one_minus = 1 - mean.*ratio.figure;
    }
    add_measures(mean, measures_, counts);
    mean.queries.clear();
    return mean;
  }

 private:
  StoredCondition stored_;
  MomentLayout single_;
  Measures measures_;
  std::vector<bool> is_measured_;  ///< [queries]
  Samples mean_;                   ///< with the queries that measures are of
};

/// Figures of draws, whose nodes are of all queries together.
JackknifedEstimates figures_of_draws(const StoredCondition& stored) {
  return jackknifed_averages(MomentTree(stored.layout, stored.nodes), stored.head_weights,
                             stored.truth, nullptr, {}, measures_of(stored));
}

/// "queries[0].mse" as "queries[17].mse".
std::string at_query(const std::string& name, std::size_t query) {
  const std::string zero = "queries[0]";
  return name.starts_with(zero)
             ? "queries[" + std::to_string(query) + "]" + name.substr(zero.size())
             : name;
}

using Errors = std::map<std::string, double>;

/// Tokens of a study of depth, where its parameters say it.
std::optional<std::uint64_t> tokens_of(const StoredCondition& stored) {
  const Value parameters = parse_json(stored.parameters).value_or(Value());
  return count_of(member(member(parameters, "tokens"), "n"));
}

/// Adds the errors of what both have; of averages where `averages`, else of figures at `query`.
void add_errors(const Samples& a, const Samples& b, const std::vector<double>& counts,
                bool averages, std::size_t query, Errors& errors) {
  std::map<std::string, const Jackknifed*> others;
  for_each_number<const Jackknifed>(
      a, [&](const std::string& name, int, const Jackknifed& one) { others[name] = &one; });
  for_each_number<const Jackknifed>(b, [&](const std::string& name, int of, const Jackknifed& one) {
    if (averages != (of == NamedFigure::of_no_query)) return;
    const auto found = others.find(name);
    if (found == others.end()) return;
    errors[at_query(name, query)] = (one - *found->second).figure(counts).mcse;
  });
}

/// Errors of the metrics of layers that both have.
std::optional<Errors> errors_of_layers(const StoredCondition& stored_a,
                                       const StoredCondition& stored_b) {
  if (stored_b.layout.mode != MomentMode::separate) return std::nullopt;
  const MomentTree tree_a(stored_a.layout, stored_a.nodes), tree_b(stored_b.layout, stored_b.nodes);
  const std::vector<double> counts = counts_of_layers(tree_a).node_counts;
  if (counts != counts_of_layers(tree_b).node_counts) return std::nullopt;
  const std::optional<std::uint64_t> n = tokens_of(stored_a);
  if (!n || n != tokens_of(stored_b)) return std::nullopt;
  const LayersOf<Jackknifed> a = jackknifed_layers(tree_a, *n), b = jackknifed_layers(tree_b, *n);
  Errors errors;
  for (std::size_t l = 0; l < std::min(a.rows.size(), b.rows.size()); ++l) {
    const auto& left = a.rows[l].metrics;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const Jackknifed difference = b.rows[l].metrics[i] - left[i];
      if (difference.leave_one_out.empty() || std::isnan(difference.value)) continue;
      errors["layers[" + std::to_string(l) + "]." + layer_metric_descriptions()[i].name] =
          difference.figure(counts).mcse;
    }
  }
  return errors;
}

}  // namespace

const char* pairing_name(Pairing pairing) {
  return word_of<Pairing::conservative>(pairing, "paired", "independent", "same problem",
                                        "conservative");
}

std::uint64_t jackknife_node_count(std::uint64_t replicates, bool per_draw) {
  const std::uint64_t size = node_replicates({.per_draw = per_draw}, replicates);
  return (replicates + size - 1) / size;
}

std::optional<Errors> paired_errors(StoredCondition stored_a, StoredCondition stored_b) {
  if (stored_a.layout.per_draw != stored_b.layout.per_draw) return std::nullopt;
  if (stored_a.layout.mode == MomentMode::separate) return errors_of_layers(stored_a, stored_b);
  if (stored_a.layout.per_draw) {
    const JackknifedEstimates of_a = figures_of_draws(stored_a), of_b = figures_of_draws(stored_b);
    if (of_a.node_counts != of_b.node_counts || of_a.mse.leave_one_out.empty()) {
      return std::nullopt;
    }
    Errors of_averages;
    add_errors(of_a, of_b, of_a.node_counts, true, 0, of_averages);
    return of_averages;
  }
  QuerySamples a(std::move(stored_a)), b(std::move(stored_b));
  Errors errors;
  std::vector<double> counts;
  const std::size_t both = std::min(a.queries(), b.queries());
  for (std::size_t q = 0; q < std::max(a.queries(), b.queries()); ++q) {
    std::optional<JackknifedEstimates> of_a, of_b;
    if (q < a.queries()) of_a = a.at(q);
    if (q < b.queries()) of_b = b.at(q);
    if (q >= both) continue;
    if (q == 0) {
      counts = of_a->node_counts;
      // Below 8 replicates there are no errors at all.
      if (counts != of_b->node_counts || of_a->mse.leave_one_out.empty()) return std::nullopt;
    }
    add_errors(*of_a, *of_b, counts, false, q, errors);
  }
  add_errors(a.averages(counts), b.averages(counts), counts, true, 0, errors);
  return errors;
}

}  // namespace headlab
