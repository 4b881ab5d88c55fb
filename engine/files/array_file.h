// SPDX-License-Identifier: Apache-2.0
/// \file Named arrays of a file, whatever its format: NPZ, safetensors or NetCDF.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/files/npy_file.h"

namespace headlab {

/// An array as its file describes it.
struct ArrayInfo {
  NumberKind kind = NumberKind::exact;
  std::vector<std::uint64_t> shape;
};

/// Arrays by name, read a part at a time. An array of layer L is called layers.L.NAME, which is
/// NAME of the group layer_L in NetCDF.
class ArrayFile {
 public:
  virtual ~ArrayFile() = default;

  const std::string& source() const { return source_; }
  const std::map<std::string, ArrayInfo>& arrays() const { return arrays_; }
  /// What the file says in words: metadata of safetensors, attributes of NetCDF, texts of NPZ.
  const std::map<std::string, std::string>& texts() const { return texts_; }

  /// Items first, .., first + count - 1 along the first axis, which the array has; finite but for
  /// -infinity where the array was not read from a file. Throws InvalidInput.
  virtual std::vector<double> read(const std::string& name, std::uint64_t first,
                                   std::uint64_t count) = 0;
  /// An item alone, put where it is wanted, in float64 or rounded to float32.
  virtual void read_item(const std::string& name, std::uint64_t item, std::span<double> to);
  virtual void read_item(const std::string& name, std::uint64_t item, std::span<float> to);
  /// Of item `item` of an array [items][tables][rows][n]: some rows of each table, ascending.
  virtual void read_rows(const std::string& name, std::uint64_t item,
                         std::span<const std::uint32_t> rows, std::span<double> to);
  virtual void read_rows(const std::string& name, std::uint64_t item,
                         std::span<const std::uint32_t> rows, std::span<float> to);
  /// All of an array, or the number that it is.
  std::vector<double> read(const std::string& name);
  std::uint64_t numbers_in_item(const std::string& name) const;

 protected:
  explicit ArrayFile(std::string source) : source_(std::move(source)) {}

  std::string source_;
  std::map<std::string, ArrayInfo> arrays_;
  std::map<std::string, std::string> texts_;
};

/// Arrays whose numbers stand one after another as in memory, the last axis varying fastest.
class FlatArrayFile : public ArrayFile {
 public:
  using ArrayFile::read;
  std::vector<double> read(const std::string& name, std::uint64_t first,
                           std::uint64_t count) override;
  void read_item(const std::string& name, std::uint64_t item, std::span<double> to) override;
  void read_item(const std::string& name, std::uint64_t item, std::span<float> to) override;
  /// Reads no others, however many there are.
  void read_rows(const std::string& name, std::uint64_t item, std::span<const std::uint32_t> rows,
                 std::span<double> to) override;
  void read_rows(const std::string& name, std::uint64_t item, std::span<const std::uint32_t> rows,
                 std::span<float> to) override;

 protected:
  using ArrayFile::ArrayFile;
  /// Numbers first, first + 1, .. of an array; finite as those of read().
  virtual void numbers(const std::string& name, std::uint64_t first, std::span<double> to) = 0;
  virtual void numbers(const std::string& name, std::uint64_t first, std::span<float> to) = 0;
};

/// How arrays are read whose axes have names, which they have in NetCDF.
struct NamedAxes {
  std::map<std::string, std::vector<std::string>> of = {};  ///< by the array, without its layer
  std::string items = {};  ///< an axis whose places may have any numbers
};

/// Opens a file by its first bytes. Throws InvalidInput, one line that begins with the path.
std::unique_ptr<ArrayFile> open_array_file(const std::string& path, const NamedAxes& axes = {});

/// The arrays of several files as if of one. Throws InvalidInput where two have the same array.
std::unique_ptr<ArrayFile> open_array_files(const std::vector<std::string>& paths,
                                            const NamedAxes& axes = {});

}  // namespace headlab
