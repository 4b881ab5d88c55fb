// SPDX-License-Identifier: Apache-2.0
/// \file NumPy's format for one array: strict reader, and a writer.
/// Source: NEP 1, "A simple file format for NumPy arrays", and numpy.lib.format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/files/stored_numbers.h"

namespace headlab {

/// What the numbers of an array are kept as.
enum class NumberKind {
  half,    ///< floats of 16 bits
  single,  ///< float32
  exact,   ///< float64
  whole    ///< integers and booleans
};

/// An array of finite numbers.
struct NpyArray {
  NumberKind kind = NumberKind::exact;
  std::vector<std::uint64_t> shape;  ///< length of each axis, none of them 0
  std::vector<double> values;        ///< [product of shape], the last axis varies fastest
};

/// True for bytes that begin like an NPY file.
bool is_npy(std::string_view bytes);

/// Reads NPY 1.0 to 3.0: little-endian floats of 2, 4 or 8 bytes, integers of 1 to 8 or booleans, C
/// or Fortran order, of min_axes to max_axes axes. The shape is checked against the length of the
/// file before anything is allocated. Throws InvalidInput, one line that begins with `source`, also
/// where a number is not finite.
NpyArray parse_npy_array(std::string_view bytes, const std::string& source, std::size_t min_axes,
                         std::size_t max_axes);

/// Where the header of an NPY file ends, as its first 12 bytes say.
std::uint64_t npy_header_end(std::string_view start);

/// The numbers of an NPY file that is read part by part.
class NpyParts {
 public:
  /// \param start as much of the file, of `size` bytes, as npy_header_end() says
  /// Throws as parse_npy_array().
  NpyParts(std::string_view start, std::uint64_t size, std::string source, std::size_t min_axes,
           std::size_t max_axes);

  NumberKind kind() const;
  const std::vector<std::uint64_t>& shape() const { return shape_; }
  /// Numbers that follow one another in the array do so in the file.
  bool in_order() const { return in_order_; }
  /// Where number `first` stands in the file, in one in order.
  std::uint64_t place(std::uint64_t first) const { return offset_ + first * bytes_of(type_); }
  StoredType type() const { return type_; }
  /// Says that number `position` is not finite. Throws InvalidInput.
  [[noreturn]] void fail_not_finite(std::uint64_t position) const;

 private:
  std::string source_;
  std::vector<std::uint64_t> shape_;
  StoredType type_;
  bool in_order_;
  std::uint64_t offset_;
};

/// The text of an NPY file that holds one text of NumPy ("<U6"); nothing for other files.
std::optional<std::string> npy_text(std::string_view bytes);

/// A table of finite numbers.
struct NpyRows {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<float> single;  ///< [rows][columns] where float32 holds all of the type, else empty
  std::vector<double> exact;  ///< [rows][columns], else empty
};

/// Reads an array of one axis (a column) or two, with the checks of parse_npy_array(). `read`
/// copies the next bytes of the file, of which there are `size`, to where it is told; it throws
/// where there are fewer. Besides the numbers it takes a MiB of memory.
NpyRows read_npy_rows(const std::function<void(char*, std::size_t)>& read, std::uint64_t size,
                      const std::string& source);

/// The bytes of an NPY 1.0 file of float64 in C order; values [product of shape].
std::string npy_bytes(const std::vector<std::uint64_t>& shape, std::span<const double> values);

/// An unsigned number from its bytes, the lowest first; at most eight.
std::uint64_t little_endian(std::string_view bytes);

/// "2 x 3 x 4"; "a scalar" without axes.
std::string shape_text(const std::vector<std::uint64_t>& shape);
/// "[1][0][2]": where the element at a position of an array stands, the last axis varying fastest.
std::string element_text(const std::vector<std::uint64_t>& shape, std::size_t position);

}  // namespace headlab
