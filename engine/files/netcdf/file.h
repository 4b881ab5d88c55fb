// SPDX-License-Identifier: Apache-2.0
/// \file The little of NetCDF-4 that headlab writes and reads, with errors as exceptions.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/files/netcdf/calls.h"

namespace headlab {

/// What a variable is, for a reader of the file.
struct VariableText {
  std::string long_name;
  std::string units = "1";  ///< empty: none, for names
};

/// A group of a file that is open; copies mean the same group. What is put into a new file reaches
/// it when the file is saved, after all definitions: each return from data to definitions would
/// visit every group there is.
class NetcdfGroup {
 public:
  /// Part of a variable: first index and length along each dimension.
  struct Slab {
    std::vector<std::size_t> start;
    std::vector<std::size_t> count;
  };

  using Values =
      std::variant<std::vector<double>, std::vector<std::int64_t>, std::vector<std::string>>;
  using Attribute = std::variant<double, std::int64_t, std::string>;

  NetcdfGroup() = default;

  NetcdfGroup define_group(const std::string& name) const;
  void define_dimension(const std::string& name, std::size_t size) const;

  void put_attribute(const std::string& name, std::string_view text) const;
  void put_attribute(const std::string& name, double number) const;
  void put_attribute(const std::string& name, std::int64_t number) const;
  /// Gives every other variable along `dimension` the attribute `coordinates` of the CF
  /// conventions: the names of the variables that say where along it a value is.
  void put_coordinates(const std::string& dimension, const std::vector<std::string>& names) const;

  /// Defines a variable of doubles, NaN wherever nothing is put.
  void define_doubles(const std::string& name, const std::vector<std::string>& dimensions,
                      const VariableText& text) const;
  void put(const std::string& name, const Slab& where, std::vector<double> values) const;

  /// Defines a variable and fills it; values [product of the dimensions].
  void write(const std::string& name, const std::vector<std::string>& dimensions,
             const VariableText& text, std::vector<double> values) const;
  /// The same with values that are made when the file is saved.
  /// \param single  kept as floats of 32 bits
  void write(const std::string& name, const std::vector<std::string>& dimensions,
             const VariableText& text, std::function<std::vector<double>()> values,
             bool single = false) const;
  void write(const std::string& name, const std::vector<std::string>& dimensions,
             const VariableText& text, std::vector<std::int64_t> values) const;
  void write(const std::string& name, const std::vector<std::string>& dimensions,
             const VariableText& text, std::vector<std::string> values) const;

  NetcdfGroup find_group(const std::string& name) const;
  bool has_group(const std::string& name) const;
  bool has_dimension(const std::string& name) const;
  std::size_t dimension(const std::string& name) const;
  bool has_variable(const std::string& name) const;
  /// Names of all variables.
  std::vector<std::string> variables() const;
  /// Names of all groups in this one.
  std::vector<std::string> groups() const;
  /// True for a variable of integers; of floats true for those of 32 bits.
  bool holds_integers(const std::string& name) const;
  bool holds_singles(const std::string& name) const;
  /// Lengths of the dimensions of a variable.
  std::vector<std::size_t> shape(const std::string& name) const;
  /// Names of the dimensions of a variable.
  std::vector<std::string> dimensions(const std::string& name) const;
  /// All values of a variable: whole numbers, texts or doubles.
  Values values(const std::string& name) const;
  /// Attributes of a variable, or of the group where `name` is empty, in their order. One of
  /// several numbers is left out.
  std::vector<std::pair<std::string, Attribute>> attributes(const std::string& name = {}) const;
  bool has_attribute(const std::string& name) const;
  std::string text_attribute(const std::string& name) const;
  std::int64_t integer_attribute(const std::string& name) const;
  std::vector<double> doubles(const std::string& name) const;
  std::vector<double> doubles(const std::string& name, const Slab& where) const;
  std::vector<std::int64_t> integers(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name) const;

 private:
  friend class NetcdfImage;
  friend class NetcdfInput;
  friend class NetcdfStream;
  using Puts = std::vector<std::function<void()>>;
  explicit NetcdfGroup(int id, Puts* puts = nullptr) : id_(id), puts_(puts) {}
  int define(const std::string& name, int type, const std::vector<std::string>& dimensions,
             const VariableText& text) const;
  int variable(const std::string& name) const;
  int number_variable(const std::string& name) const;
  std::vector<std::size_t> shape(int variable) const;
  std::size_t size(int variable) const;

  int id_ = -1;
  Puts* puts_ = nullptr;  ///< of the new file, nullptr in one that is read
};

/// A new file, put together in memory and then written in one go: the HDF5 library below crashes
/// where a disk fills up under it, and its locks fail on network file systems.
class NetcdfImage {
 public:
  NetcdfImage();
  ~NetcdfImage();
  NetcdfImage(const NetcdfImage&) = delete;
  NetcdfImage& operator=(const NetcdfImage&) = delete;

  NetcdfGroup root() { return NetcdfGroup(id_, &puts_); }
  /// Closes the image and writes it to `path` with its sums (engine/files/netcdf/sums.h), whole or
  /// not at all; throws RunFailed.
  void save(const std::string& path);
  /// Closes the image and gives its bytes away.
  NetcdfBytes bytes();

 private:
  void fill();

  int id_ = -1;
  NetcdfGroup::Puts puts_;
};

/// A new file for data larger than memory, written a part at a time. Its bytes depend on what is
/// defined and put alone, not on the order of the parts: variables without chunks, compression or
/// times, laid out in the order of their definitions. The caller sees to it that the disk has room
/// (see NetcdfImage), and calls one function at a time, of all streams.
class NetcdfStream {
 public:
  enum class Type { float32, float64, int64 };

  /// Makes the file, in place of one that is there.
  explicit NetcdfStream(const std::string& path);
  ~NetcdfStream();
  NetcdfStream(const NetcdfStream&) = delete;
  NetcdfStream& operator=(const NetcdfStream&) = delete;

  NetcdfGroup root() const { return NetcdfGroup(id_); }
  void define_array(const std::string& name, Type type, const std::vector<std::string>& dimensions,
                    const VariableText& text);
  /// Ends the definitions and lays the variables out, none of them empty.
  void begin_data();
  /// Puts a part of a variable; `values` are of its type, as many as the part has.
  void put(const std::string& name, const NetcdfGroup::Slab& where, const void* values);
  void close();

 private:
  int id_ = -1;
  std::vector<std::string> arrays_;
};

/// An existing file, open for reading. What of it was changed since the program wrote it is refused
/// (NetcdfDamage), what was added is not there (engine/files/foreign_files.h).
class NetcdfInput {
 public:
  explicit NetcdfInput(const std::string& path);
  /// The bytes of a file, which must outlive the input.
  explicit NetcdfInput(const NetcdfBytes& bytes);
  ~NetcdfInput();
  NetcdfInput(const NetcdfInput&) = delete;
  NetcdfInput& operator=(const NetcdfInput&) = delete;

  NetcdfGroup root() const { return NetcdfGroup(id_); }

 private:
  void open(const NetcdfBytes& bytes);

  NetcdfBytes bytes_;
  int id_ = -1;
};

}  // namespace headlab
