// SPDX-License-Identifier: Apache-2.0
/// \file The numbers behind a plan's laws (means, factors, frequencies, rows of data), in one array
/// that a backend can copy to where it computes. A law keeps offsets into it, never pointers.
#pragma once

#include <cstdint>
#include <vector>

namespace headlab {

/// Append-only array of doubles; backends that compute in float32 use `rounded`.
class Table {
 public:
  /// Appends `numbers` and returns the offset of the first.
  std::int64_t add(const std::vector<double>& numbers) {
    const auto offset = static_cast<std::int64_t>(exact_.size());
    exact_.insert(exact_.end(), numbers.begin(), numbers.end());
    rounded_.insert(rounded_.end(), numbers.begin(), numbers.end());
    return offset;
  }
  /// Appends a matrix row by row.
  std::int64_t add(const std::vector<std::vector<double>>& rows) {
    const auto offset = static_cast<std::int64_t>(exact_.size());
    for (const auto& row : rows) add(row);
    return offset;
  }

  const double* exact() const { return exact_.data(); }
  const float* rounded() const { return rounded_.data(); }
  std::size_t size() const { return exact_.size(); }

  bool operator==(const Table&) const = default;

 private:
  std::vector<double> exact_;
  std::vector<float> rounded_;
};

}  // namespace headlab
