// SPDX-License-Identifier: Apache-2.0
/// \file The replicates of a node that are the most extreme by some key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace headlab {

/// A replicate and its key.
struct Extreme {
  double key = 0;
  std::uint64_t replicate = 0;
  bool operator==(const Extreme&) const = default;
};

/// Most extremes of a kind that are kept.
inline constexpr std::size_t max_extremes = 8;

/// Replicates of which none is twice, the most extreme first; of equal keys the lower replicate. A
/// key that is not finite is left out. Which ones are kept depends on the replicates alone, not on
/// the order in which they come or are merged.
class ExtremeList {
 public:
  enum class Kind { largest, least };
  explicit ExtremeList(Kind kind) : kind_(kind) {}

  /// Adds a replicate unless `most` are more extreme.
  void add(const Extreme& extreme, std::size_t most = max_extremes);
  void merge(const ExtremeList& other, std::size_t most = max_extremes);
  /// Removes replicates from `first` on.
  void remove_from(std::uint64_t first);
  /// Removes replicates before `first`.
  void remove_before(std::uint64_t first);
  /// Keeps the first `most`.
  void truncate(std::size_t most);
  /// Empties the list and keeps its memory.
  void clear() { all_.clear(); }

  const std::vector<Extreme>& all() const { return all_; }
  bool operator==(const ExtremeList&) const = default;

 private:
  bool before(const Extreme& a, const Extreme& b) const {
    if (a.key == b.key) return a.replicate < b.replicate;
    return kind_ == Kind::largest ? a.key > b.key : a.key < b.key;
  }

  Kind kind_;
  std::vector<Extreme> all_;
};

/// The extremes of a node.
struct Extremes {
  /// By the squared error of the ensemble, averaged over queries
  /// (kernels/statistics/replicate_error.h).
  ExtremeList max_error{ExtremeList::Kind::largest};
  /// By the least effective sample size 1 / sum_i w_i^2 of all heads and queries; none where the
  /// backend does not know it for every replicate.
  std::optional<ExtremeList> min_sample_size{ExtremeList(ExtremeList::Kind::least)};

  void merge(const Extremes& other, std::size_t most = max_extremes);
  /// Calls act(list) for each list there is.
  template <class Act>
  void for_each(const Act& act) {
    act(max_error);
    if (min_sample_size) act(*min_sample_size);
  }
  bool operator==(const Extremes&) const = default;
};

}  // namespace headlab
