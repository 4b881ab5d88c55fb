// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/plan_fingerprint.h"

#include <span>
#include <vector>

#include "engine/files/sha256.h"

namespace headlab {
namespace {

/// The sum of the rows of a data file, in float64.
Sha256 sum_of_rows(const FileRows& rows) {
  if (rows.exact_sum()) return *rows.exact_sum();
  Sha256 sum;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::vector<double> row(rows[i].begin(), rows[i].end());
    sum.add(std::as_bytes(std::span(row)));
  }
  return sum;
}

}  // namespace

std::string plan_sha256(const Plan& plan) {
  Sha256 sum = sum_of_rows(plan.table.rows());
  sum.add(std::as_bytes(std::span(plan.table.exact(), plan.table.size())));
  sum.add(std::as_bytes(std::span(plan.projections)));
  sum.add(std::as_bytes(std::span(plan.query_projections)));
  sum.add(std::as_bytes(std::span(plan.query_points)));
  sum.add(std::as_bytes(std::span(plan.head_weights)));
  if (plan.redraws) sum.add(std::as_bytes(std::span("redraws")));
  return sum.digest();
}

}  // namespace headlab
