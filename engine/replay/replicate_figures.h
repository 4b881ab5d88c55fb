// SPDX-License-Identifier: Apache-2.0
/// \file Single replicates of a run: what the ensemble estimates in each, and how far off it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "engine/results/result.h"
#include "engine/run/session.h"
#include "engine/scenario/scenario.h"

namespace headlab {

/// The ensemble in one replicate, at one query.
struct ReplicateFigure {
  std::size_t condition = 0;
  std::uint64_t replicate = 0;
  std::size_t query = 0;
  double estimate = 0;
  double truth = 0;
  double squared_error = 0;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("condition", condition, "number of the condition, from 0");
    visit("replicate", replicate, "number of the replicate, from 0");
    visit("query", query, "number of the query, from 0");
    visit("estimate", estimate, "estimate of the ensemble, noise as the estimator has it");
    visit("truth", truth, "regression function m(x)");
    visit("squared_error", squared_error,
          "squared error, with the variance of the noise where that is integrated");
  }
};

/// Computes replicates of a run again, the first `first` of each condition or all, and calls
/// take(figures) in the order of conditions, replicates and queries. Returns false where the
/// session stops before the end.
bool replicate_figures(const RunResult& result, std::optional<std::uint64_t> first,
                       const Session& session,
                       const std::function<void(std::span<const ReplicateFigure>)>& take);

/// Throws InvalidInput, naming `option`, for a file that ends in neither .csv nor .nc, for a study
/// of depth, and for more than memory or the disk of the file has room for.
void require_replicate_file(const std::string& option, const std::string& path,
                            const Scenario& scenario, std::optional<std::uint64_t> first);

/// What the file takes at most [bytes].
std::uint64_t replicate_file_bytes(const std::string& path, const Scenario& scenario,
                                   std::optional<std::uint64_t> first);

/// Writes the file whole or not at all, in the format of its ending: a row for each figure, in
/// NetCDF over the dimension `row`. Returns false where the session stops: there is no file then.
/// Throws RunFailed.
bool write_replicate_figures(const std::string& path, const RunResult& result,
                             std::optional<std::uint64_t> first, const Session& session);

}  // namespace headlab
