// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/plan_fingerprint.h"

#include <span>

#include "engine/files/sha256.h"

namespace headlab {

std::string plan_sha256(const Plan& plan) {
  Sha256 sum;
  sum.add(std::as_bytes(std::span(plan.table.exact(), plan.table.size())));
  sum.add(std::as_bytes(std::span(plan.projections)));
  sum.add(std::as_bytes(std::span(plan.query_projections)));
  sum.add(std::as_bytes(std::span(plan.query_points)));
  sum.add(std::as_bytes(std::span(plan.head_weights)));
  return sum.digest();
}

}  // namespace headlab
