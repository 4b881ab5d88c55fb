// SPDX-License-Identifier: Apache-2.0
/// \file The parameters of one condition, as they were written.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "engine/files/document.h"
#include "engine/scenario/sweep.h"

namespace headlab {

/// A scenario after --set and sweep, without [sweep]. Of a sweep it keeps the place alone: there
/// may be 10^6 conditions, and a tree of values takes kilobytes.
class Parameters {
 public:
  Parameters() = default;
  Parameters(Value tree) : tree_(std::make_shared<const Value>(std::move(tree))) {}
  Parameters(std::shared_ptr<const Sweep> sweep, std::size_t condition)
      : sweep_(std::move(sweep)), condition_(condition) {}

  /// A copy of the values.
  Value tree() const {
    if (sweep_) return sweep_->condition(condition_);
    return tree_ ? *tree_ : Value();
  }

 private:
  std::shared_ptr<const Value> tree_;
  std::shared_ptr<const Sweep> sweep_;
  std::size_t condition_ = 0;
};

}  // namespace headlab
