// SPDX-License-Identifier: Apache-2.0
/// \file The numbers behind a plan's laws (means, factors, frequencies, rows of data), in arrays
/// that a backend can copy to where it computes. A law keeps offsets into them, never pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/file_rows.h"

namespace headlab {

/// Append-only array of doubles; backends that compute in float32 use `rounded`. Rows of a data
/// file lie in an array of their own, from which design laws draw. Copies share their numbers; what
/// appends copies them, so that no thread waits for another (see kernels/copy_on_write.h).
class Table {
 public:
  Table() = default;
  Table(const std::vector<double>& numbers) { add(numbers); }
  Table(std::initializer_list<double> numbers) { add(std::vector<double>(numbers)); }

  /// Appends `numbers` and returns the offset of the first.
  std::int64_t add(const std::vector<double>& numbers) {
    const auto offset = static_cast<std::int64_t>(size());
    if (numbers.empty()) return offset;
    Arrays longer = arrays_ ? *arrays_ : Arrays();
    longer.exact.insert(longer.exact.end(), numbers.begin(), numbers.end());
    longer.rounded.insert(longer.rounded.end(), numbers.begin(), numbers.end());
    arrays_ = std::make_shared<const Arrays>(std::move(longer));
    return offset;
  }
  /// Appends a matrix row by row.
  std::int64_t add(const std::vector<std::vector<double>>& rows) {
    std::vector<double> numbers;
    for (const auto& row : rows) numbers.insert(numbers.end(), row.begin(), row.end());
    return add(numbers);
  }
  /// Appends the numbers of another table; shares them where this one is empty.
  std::int64_t add(const Table& other) {
    if (size() > 0) return add(other.size() == 0 ? std::vector<double>{} : other.arrays_->exact);
    arrays_ = other.arrays_;
    return 0;
  }

  /// Makes these the rows that the design draws from. To be called once.
  void set_rows(FileRows rows) { rows_ = std::move(rows); }
  const FileRows& rows() const { return rows_; }

  const double* exact() const { return arrays_ ? arrays_->exact.data() : nullptr; }
  const float* rounded() const { return arrays_ ? arrays_->rounded.data() : nullptr; }
  /// What samplers of designs take: the rows of a data file, else `rounded`.
  const float* design() const { return rows_.empty() ? rounded() : rows_.numbers().data(); }
  /// Of `exact` and `rounded`.
  std::size_t size() const { return arrays_ ? arrays_->exact.size() : 0; }

  /// Shares the numbers of `other` where they are equal, so that they are held once.
  void share_with(const Table& other) {
    if (rows_ == other.rows_) rows_ = other.rows_;
    if (equal_arrays(other)) arrays_ = other.arrays_;
  }

  bool operator==(const Table& other) const { return rows_ == other.rows_ && equal_arrays(other); }

 private:
  struct Arrays {
    std::vector<double> exact;
    std::vector<float> rounded;
    bool operator==(const Arrays&) const = default;
  };

  bool equal_arrays(const Table& other) const {
    if (arrays_ == other.arrays_) return true;
    if (size() != other.size()) return false;
    return size() == 0 || *arrays_ == *other.arrays_;
  }

  std::shared_ptr<const Arrays> arrays_;
  FileRows rows_;
};

}  // namespace headlab
