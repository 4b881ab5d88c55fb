// SPDX-License-Identifier: Apache-2.0
/// \file Memory of tiles that several threads work on.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace headlab {

/// Numbers of tiles, one after another.
template <class T>
class TileMemory {
  struct GiveBack {
    TileMemory* to;
    void operator()(T* numbers) const {
      std::unique_ptr<T[]> owned(numbers);
      const std::scoped_lock lock(to->mutex_);
      to->free_.push_back(std::move(owned));
    }
  };

 public:
  /// `size` numbers of any values; at another size than before all of those have come back.
  std::unique_ptr<T[], GiveBack> lend(std::size_t size) {
    std::unique_ptr<T[]> numbers;
    {
      const std::scoped_lock lock(mutex_);
      if (std::exchange(size_, size) != size) {
        free_.clear();
        made_ = 0;
      }
      if (!free_.empty()) {
        numbers = std::move(free_.back());
        free_.pop_back();
      } else {
        free_.reserve(++made_);  // what gives numbers back must not fail
      }
    }
    if (numbers == nullptr) numbers = std::make_unique_for_overwrite<T[]>(size);
    return {numbers.release(), GiveBack{this}};
  }

 private:
  std::mutex mutex_;
  std::size_t size_ = 0;
  std::size_t made_ = 0;  ///< of this size
  std::vector<std::unique_ptr<T[]>> free_;
};

}  // namespace headlab
