// SPDX-License-Identifier: Apache-2.0
/// \file Numbers of a data file, held once however many conditions refer to them.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace headlab {

class Sha256;

/// Rows [N][d] in float32, as design points are drawn. Copies share the numbers, which never
/// change.
class FileRows {
 public:
  FileRows() = default;
  /// Rows of equal length, rounded to float32.
  FileRows(const std::vector<std::vector<double>>& rows) {
    std::vector<float> numbers;
    for (const auto& row : rows) numbers.insert(numbers.end(), row.begin(), row.end());
    *this = FileRows(std::move(numbers), rows.empty() ? 0 : rows[0].size());
  }
  FileRows(std::initializer_list<std::vector<double>> rows)
      : FileRows(std::vector<std::vector<double>>(rows)) {}
  /// \param numbers [N][columns]
  /// \param exact_sum over the bytes of the numbers in float64, before they were rounded: what the
  ///        fingerprint of a plan begins with; nullptr where rounding changed nothing
  FileRows(std::vector<float> numbers, std::size_t columns,
           std::shared_ptr<const Sha256> exact_sum = nullptr)
      : numbers_(std::make_shared<const std::vector<float>>(std::move(numbers))),
        columns_(columns),
        exact_sum_(std::move(exact_sum)) {}

  bool empty() const { return size() == 0; }
  std::size_t size() const { return columns_ == 0 ? 0 : numbers_->size() / columns_; }
  std::size_t columns() const { return columns_; }
  /// [N][d]
  std::span<const float> numbers() const {
    return numbers_ ? std::span(*numbers_) : std::span<const float>();
  }
  std::span<const float> operator[](std::size_t row) const {
    return numbers().subspan(row * columns_, columns_);
  }
  const std::shared_ptr<const Sha256>& exact_sum() const { return exact_sum_; }

  bool operator==(const FileRows& other) const {
    return numbers_ == other.numbers_ || (columns_ == other.columns_ && numbers_ &&
                                          other.numbers_ && *numbers_ == *other.numbers_);
  }

 private:
  std::shared_ptr<const std::vector<float>> numbers_;
  std::size_t columns_ = 0;
  std::shared_ptr<const Sha256> exact_sum_;
};

}  // namespace headlab
