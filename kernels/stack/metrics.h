// SPDX-License-Identifier: Apache-2.0
/// \file Metrics of tokens and of attention, from their state.
#pragma once

#include <span>

#include <Eigen/Core>

#include "kernels/stack/attention.h"
#include "kernels/stack/layer_metrics.h"
#include "kernels/stack/tokens.h"
#include "kernels/statistics/moments.h"

namespace headlab {

/// Of the moments of a stack: L + 1 groups, the rows, each of the metrics in
/// the order of fields().
MomentLayout stack_layout(int layers);
/// Writes the metrics [layout.per_query()] in that order.
void write_metrics(const LayerMetrics& metrics, std::span<double> out);

/// log_residual to collapsed.
/// \param unit the tokens under an rms norm with epsilon 0
void measure_tokens(const CentredTokens& tokens, const NormedTokens& unit,
                    const StackArithmetic& arithmetic, LayerMetrics& out);
/// entropy to self_weight.
/// \param heads those in use, at least one
void measure_attention(std::span<const Attention> heads, const StackArithmetic& arithmetic,
                       LayerMetrics& out);
/// tau of the rows 1 a^T + e^v B; undefined unless there are 2 to 256.
double dobrushin(const RowsView& rest, double exponent, const StackArithmetic& arithmetic);

/// Singular values of X, largest first, up to a common factor.
Eigen::VectorXd scaled_singular_values(const CentredTokens& tokens);
/// stable_rank and effective_rank; second_eigenvalue unless there are no heads.
void measure_spectra(const CentredTokens& tokens, std::span<const Attention> heads,
                     LayerMetrics& out);

}  // namespace headlab
