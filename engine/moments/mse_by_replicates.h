// SPDX-License-Identifier: Apache-2.0
/// \file How the mean squared error and its standard error came along as replicates were added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/moments/jackknife.h"
#include "engine/moments/moment_tree.h"
#include "kernels/controls.h"

namespace headlab {

/// The mean squared error of the ensemble after some replicates, averaged over the queries.
struct MseAfter {
  std::uint64_t replicates = 0;
  std::size_t nodes = 0;  ///< behind the standard error
  Estimate mse;
};

/// The mean squared error over the first nodes of a run, at up to `most` numbers of nodes from 8 on
/// that grow by a constant factor; the last is that of all. Empty for fewer than 8 nodes. Where
/// heads or queries are drawn again, the least is 16 nodes (min_draws_for_mcse). Standard errors
/// are jackknives over the nodes of the whole run, so that an early one has fewer nodes than the
/// run had when it was there.
/// \param head_weights [H]
/// \param truth [Q], m at the queries
/// \param use of exact controls by the whole run; null: all
std::vector<MseAfter> mse_by_replicates(const MomentTree& tree,
                                        std::span<const double> head_weights,
                                        std::span<const double> truth,
                                        const ControlUse* use = nullptr, std::size_t most = 12);

}  // namespace headlab
