// SPDX-License-Identifier: Apache-2.0
/// \file Reads the nodes of results.nc back, of format versions 1 and 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/netcdf/file.h"
#include "engine/moments/moment_tree.h"
#include "kernels/controls.h"

namespace headlab {

struct ResultsBlock;

/// What a results file holds of one condition.
struct StoredCondition {
  std::string parameters;   ///< of the scenario, as JSON
  std::string plan_sha256;  ///< of the plan that was simulated; empty in old files
  MomentLayout layout;
  std::vector<Node> nodes;           ///< as MomentTree::nodes()
  std::optional<Extremes> extremes;  ///< as MomentTree::kept_extremes(); none in old files
  // Of a study of depth these are empty.
  std::vector<double> head_weights;       ///< [H]
  std::vector<double> query_points;       ///< [Q][d]
  std::vector<double> truth;              ///< [Q]
  std::optional<Controls> controls = {};  ///< exact ones; none without, and in old files

  const ControlUse* use() const { return controls ? &controls->use : nullptr; }
};

/// The conditions of a results file that is open. Everything throws NetcdfError.
class ResultsReader {
 public:
  explicit ResultsReader(const NetcdfGroup& root);

  std::size_t conditions() const { return conditions_; }
  /// Condition `number` (from 0) with the bits that were written.
  StoredCondition read(std::size_t number) const;

 private:
  /// Conditions of one moment layout.
  struct Group {
    NetcdfGroup group;
    NetcdfGroup nodes;
    MomentLayout layout;
    std::size_t coordinates = 0;
    std::vector<std::int64_t> condition, first, count, empty, narrow;  ///< of each node
    std::vector<std::optional<Extremes>> extremes;                     ///< of each condition
  };
  struct Place {
    std::size_t group;
    std::size_t row;
  };

  void add_group(const ResultsBlock& block);
  StoredCondition read_version_1(std::size_t number) const;

  NetcdfGroup root_;
  std::int64_t version_;
  std::size_t conditions_;
  std::vector<std::string> parameters_, plan_sums_, estimators_, moments_;
  std::vector<std::string> redraws_;      ///< of each condition, empty where nothing is drawn again
  std::vector<std::int64_t> dimensions_;  ///< d of each condition
  std::vector<Group> groups_;
  std::map<std::size_t, Place> places_;  ///< by condition
};

/// Reads condition `number` (from 0) of a file. Throws InvalidInput for a file that is not there or
/// was not written by write_results().
StoredCondition read_nodes(const std::string& path, std::size_t number);

}  // namespace headlab
