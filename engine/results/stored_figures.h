// SPDX-License-Identifier: Apache-2.0
/// \file Reads the figures of earlier results back, from results.nc or summary.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/moments/error_terms.h"
#include "engine/moments/jackknife.h"
#include "engine/results/results_reader.h"

namespace headlab {

/// A figure by its name in the summary: "mse", "indices.output", "queries[0].head_bias[1]".
struct NamedFigure {
  static constexpr int of_no_query = -1;
  std::string name;
  Estimate estimate;
  int query = of_no_query;
  bool exact = false;  ///< follows from the scenario alone, without Monte Carlo error
};

/// Figures of one condition.
struct StoredFigures {
  std::uint64_t replicates = 0;
  bool per_draw = false;         ///< heads or queries are drawn again for every leaf
  std::string plan_sha256 = {};  ///< empty where the file does not say, as the next
  std::string nodes_sha256 = {};
  std::vector<std::vector<double>> x = {};  ///< [Q][d], the queries
  std::vector<double> truth = {};           ///< [Q]
  std::vector<NamedFigure> figures = {};
};

/// Calls use(name, query, number) for every number of the terms, averages and indices first, of
/// covariances those with l >= h.
template <class Number, class Terms, class Use>
void for_each_number(Terms& terms, const Use& use) {
  NumberList<Number> averages, indices;
  terms.fields(averages);
  terms.index_fields(indices);
  for (const auto& one : averages.all) use(one.name, NamedFigure::of_no_query, *one.number);
  for (const auto& one : indices.all) {
    use("indices." + std::string(one.name), NamedFigure::of_no_query, *one.number);
  }
  for (std::size_t q = 0; q < terms.queries.size(); ++q) {
    auto& at = terms.queries[q];
    const std::string query = "queries[" + std::to_string(q) + "].";
    const int number = static_cast<int>(q);
    const std::size_t heads = at.head_bias.size();
    use(query + "mse", number, at.mse);
    for (std::size_t h = 0; h < heads; ++h) {
      use(query + "head_bias[" + std::to_string(h) + "]", number, at.head_bias[h]);
    }
    if (at.head_covariance.empty()) continue;
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t l = h; l < heads; ++l) {
        use(query + "head_covariance[" + std::to_string(h) + "][" + std::to_string(l) + "]", number,
            at.head_covariance[h * heads + l]);
      }
    }
  }
}

/// Results of `headlab run` in a folder or a file.
class StoredResults {
 public:
  /// \param place folder with results.nc or summary.json, or one of these files
  /// Throws InvalidInput for what holds no results of a run, and for a folder whose two files are
  /// of different states of a run.
  explicit StoredResults(const std::string& place);
  ~StoredResults();
  StoredResults(const StoredResults&) = delete;
  StoredResults& operator=(const StoredResults&) = delete;

  /// The file that is read.
  const std::string& path() const { return path_; }
  /// What made it, as pairs of a name and a text: version, git, backend, ... Those that the file
  /// does not say are missing.
  const std::vector<std::pair<std::string, std::string>>& origin() const;
  bool complete() const;
  /// Number of conditions.
  std::size_t size() const;
  bool has_nodes() const;

  /// Scenario of condition i after --set and sweep, as JSON.
  std::string parameters(std::size_t i) const;
  StoredFigures figures(std::size_t i) const;
  /// Requires has_nodes(). Throws InvalidInput where they are damaged.
  StoredCondition nodes(std::size_t i) const;

  /// One kind of file.
  class Source;

 private:
  std::string path_;
  std::unique_ptr<Source> source_;
};

}  // namespace headlab
