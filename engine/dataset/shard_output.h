// SPDX-License-Identifier: Apache-2.0
/// \file The files of one shard while they are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/dataset/dataset.h"
#include "engine/files/atomic_file.h"

namespace headlab {

/// Text and numbers that a NetCDF file says of itself.
struct DatasetAttributes {
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<std::pair<std::string, std::int64_t>> numbers;
};

/// A file or folder under a temporary name until it is finished. Where it is not it goes.
class TemporaryPath {
 public:
  /// Makes the folder that it is in. Throws RunFailed, also where that is a link.
  explicit TemporaryPath(std::string target);
  ~TemporaryPath();
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;

  const std::string& target() const { return target_; }
  const std::string& name() const { return name_; }
  /// Puts it in its place; of a folder that is there already, its files take the place of those
  /// with their names. Throws RunFailed.
  void rename();

 private:
  std::string target_;
  std::string name_;
  ScratchPath scratch_;
  bool renamed_ = false;
};

/// Writes variables into the files of a shard, any part at any time.
class ShardOutput {
 public:
  virtual ~ShardOutput() = default;
  /// Puts `bytes` into a variable of the shard (its place in the list), `first` elements from its
  /// beginning in C order. May be called from several threads. Throws RunFailed.
  virtual void put(std::size_t variable, std::uint64_t first, std::span<const std::byte> bytes) = 0;
  /// To be called once, after all has been put.
  virtual void close() = 0;
};

/// Opens the files of a shard at `path`, where nothing is yet, with room for all that they will
/// hold set aside on the disk: a file of format netcdf, a folder of VARIABLE.npy. `shown` is the
/// path that errors name. Throws RunFailed.
std::unique_ptr<ShardOutput> open_shard(DatasetFormat format, const std::string& path,
                                        const std::string& shown,
                                        const std::vector<DatasetVariable>& variables,
                                        const DatasetAttributes& attributes);

/// The parts that a range of elements in C order is made of, as index ranges that have full length
/// in every dimension behind the first that has more than one index: calls
/// part(start, count, elements), in order.
void for_each_slab(std::span<const std::uint64_t> shape, std::uint64_t first,
                   std::uint64_t elements,
                   const std::function<void(const std::vector<std::size_t>&,
                                            const std::vector<std::size_t>&, std::uint64_t)>& part);

/// The first bytes of an NPY file (format version 1.0): the numbers follow in C order, from a
/// multiple of 64 bytes on, so that they can be mapped into memory.
std::string npy_header(NumberType type, const std::vector<std::uint64_t>& shape);

/// Bytes that a shard takes in addition to its numbers, at most.
inline constexpr std::uint64_t shard_overhead_bytes = std::uint64_t{1} << 16;

}  // namespace headlab
