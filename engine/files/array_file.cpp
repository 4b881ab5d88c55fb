// SPDX-License-Identifier: Apache-2.0
#include "engine/files/array_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <variant>

#include "engine/files/available_memory.h"
#include "engine/files/document.h"
#include "engine/files/input_file.h"
#include "engine/files/models/safetensors.h"
#include "engine/files/netcdf/axes.h"
#include "engine/files/netcdf/file.h"
#include "engine/files/zip_file.h"

namespace headlab {
namespace {

constexpr std::size_t max_axes_of_entry = 5;

class NpzFile : public FlatArrayFile {
 public:
  explicit NpzFile(const std::string& path)
      : FlatArrayFile(path), zip_(open_regular(path), one_line(path)) {
    for (const auto& [entry, content] : zip_.entries()) {
      if (!entry.ends_with(ending)) {
        reject({path}, "", "has entry " + one_line(entry, 80) + ", which is not an array");
      }
      zip_.check(entry);
      const std::string name = entry.substr(0, entry.size() - ending.size());
      const std::string start = zip_.read(entry, 0, npy_header_end(zip_.read(entry, 0, 12)));
      if (npy_text(start)) {
        texts_[name] = *npy_text(zip_.read(entry, 0, content.size));
        continue;
      }
      const std::string source = path + ": " + one_line(entry, 80);
      const NpyParts parts(start, content.size, source, 0, max_axes_of_entry);
      arrays_[name] = {parts.kind(), parts.shape()};
      parts_.emplace(name, parts);
      if (parts.in_order()) continue;
      const std::string bytes = zip_.read(entry, 0, content.size);
      whole_[name] = parse_npy_array(bytes, source, 0, max_axes_of_entry).values;
    }
  }

 protected:
  void numbers(const std::string& name, std::uint64_t first, std::span<double> to) override {
    take(name, first, to);
  }
  void numbers(const std::string& name, std::uint64_t first, std::span<float> to) override {
    take(name, first, to);
  }

 private:
  template <class T>
  void take(const std::string& name, std::uint64_t first, std::span<T> to) {
    const auto whole = whole_.find(name);
    if (whole != whole_.end()) {
      std::ranges::transform(std::span(whole->second).subspan(first, to.size()), to.begin(),
                             [](double number) { return static_cast<T>(number); });
      return;
    }
    const NpyParts& parts = parts_.at(name);
    const std::string entry = name + std::string(ending);
    const auto wrong =
        read_numbers(parts.type(), to, [&](std::uint64_t done, std::span<char> bytes) {
          zip_.read(entry, parts.place(first + done), bytes);
        });
    if (wrong) parts.fail_not_finite(first + *wrong);
  }

  static constexpr std::string_view ending = ".npy";

  ZipFile zip_;
  std::map<std::string, NpyParts> parts_;
  std::map<std::string, std::vector<double>> whole_;  ///< of another order than C's
};

class SafetensorsArrays : public FlatArrayFile {
 public:
  explicit SafetensorsArrays(const std::string& path) : FlatArrayFile(path), file_(path) {
    texts_ = file_.metadata();
    for (const auto& [name, tensor] : file_.tensors()) {
      const NumberKind kind = tensor.type == "F64"      ? NumberKind::exact
                              : tensor.type == "F32"    ? NumberKind::single
                              : is_float_tensor(tensor) ? NumberKind::half
                                                        : NumberKind::whole;
      arrays_[name] = {kind, tensor.shape};
    }
  }

 protected:
  void numbers(const std::string& name, std::uint64_t first, std::span<double> to) override {
    file_.read_part(name, first, to);
  }
  void numbers(const std::string& name, std::uint64_t first, std::span<float> to) override {
    file_.read_part(name, first, to);
  }

 private:
  SafetensorsFile file_;
};

class NetcdfArrays : public ArrayFile {
 public:
  NetcdfArrays(const std::string& path, const NamedAxes& axes) : ArrayFile(path), input_(path) {
    take(input_.root(), "", axes);
    for (const std::string& group : input_.root().groups()) {
      constexpr std::string_view start = "layer_";
      if (group.starts_with(start)) {
        take(input_.root().find_group(group), "layers." + group.substr(start.size()) + ".", axes);
      }
    }
  }

  std::vector<double> read(const std::string& name, std::uint64_t first,
                           std::uint64_t count) override {
    NetcdfGroup::Slab where;
    for (const std::uint64_t length : arrays_.at(name).shape) where.count.push_back(length);
    where.start.assign(where.count.size(), 0);
    if (!where.count.empty()) {
      where.start[0] = first;
      where.count[0] = count;
    }
    try {
      std::vector<double> numbers = variables_.at(name).doubles(where);
      if (!std::ranges::all_of(numbers, [](double x) { return std::isfinite(x); })) {
        reject({source_}, "", "variable " + name + " has a number that is not finite");
      }
      return numbers;
    } catch (const NetcdfError& problem) {
      reject({source_}, "", one_line(problem.what()));
    }
  }

 private:
  void take(const NetcdfGroup& group, const std::string& prefix, const NamedAxes& axes) {
    for (const auto& [key, value] : group.attributes()) {
      texts_[prefix + key] = std::visit(
          [](const auto& what) -> std::string {
            if constexpr (std::is_convertible_v<decltype(what), std::string>) {
              return what;
            } else {
              return number_text(static_cast<double>(what));
            }
          },
          value);
    }
    for (const std::string& variable : group.variables()) {
      const auto known = axes.of.find(variable);
      if (known == axes.of.end() && is_coordinate(group, variable)) {
        check_coordinate(group, variable, variable != axes.items);
        continue;
      }
      const NetcdfArray array(group, variable,
                              known == axes.of.end() ? std::vector<std::string>() : known->second);
      const std::vector<std::size_t>& shape = array.shape();
      arrays_[prefix + variable] = {group.holds_integers(variable)  ? NumberKind::whole
                                    : group.holds_singles(variable) ? NumberKind::single
                                                                    : NumberKind::exact,
                                    {shape.begin(), shape.end()}};
      variables_[prefix + variable] = array;
    }
  }

  NetcdfInput input_;
  std::map<std::string, NetcdfArray> variables_;
};

class JoinedFiles : public ArrayFile {
 public:
  JoinedFiles(const std::vector<std::string>& paths, const NamedAxes& axes)
      : ArrayFile(paths.front()) {
    for (const std::string& path : paths) {
      files_.push_back(open_array_file(path, axes));
      for (const auto& [name, info] : files_.back()->arrays()) {
        if (!arrays_.emplace(name, info).second) {
          reject({path}, "", "has array " + name + ", which another file has too");
        }
        places_[name] = files_.back().get();
      }
      for (const auto& [name, text] : files_.back()->texts()) {
        const auto [at, added] = texts_.emplace(name, text);
        if (!added && at->second != text) {
          reject({path}, "",
                 "says " + one_line(name + " " + text, 80) + ", another file says " +
                     one_line(at->second, 80));
        }
      }
    }
  }

  std::vector<double> read(const std::string& name, std::uint64_t first,
                           std::uint64_t count) override {
    return places_.at(name)->read(name, first, count);
  }
  void read_item(const std::string& name, std::uint64_t item, std::span<double> to) override {
    places_.at(name)->read_item(name, item, to);
  }
  void read_item(const std::string& name, std::uint64_t item, std::span<float> to) override {
    places_.at(name)->read_item(name, item, to);
  }
  void read_rows(const std::string& name, std::uint64_t item, std::span<const std::uint32_t> rows,
                 std::span<double> to) override {
    places_.at(name)->read_rows(name, item, rows, to);
  }
  void read_rows(const std::string& name, std::uint64_t item, std::span<const std::uint32_t> rows,
                 std::span<float> to) override {
    places_.at(name)->read_rows(name, item, rows, to);
  }

 private:
  std::vector<std::unique_ptr<ArrayFile>> files_;
  std::map<std::string, ArrayFile*> places_;
};

}  // namespace

std::uint64_t ArrayFile::numbers_in_item(const std::string& name) const {
  const std::vector<std::uint64_t>& shape = arrays_.at(name).shape;
  std::uint64_t count = 1;
  for (std::size_t axis = 1; axis < shape.size(); ++axis) count *= shape[axis];
  return count;
}

namespace {

template <class T>
void put_rounded(std::span<const double> numbers, std::span<T> to) {
  std::ranges::transform(numbers, to.begin(), [](double number) { return static_cast<T>(number); });
}

/// Calls take(row, place) for the rows of an item and for where they go; both count numbers.
template <class Take>
void over_rows(const std::vector<std::uint64_t>& shape, std::span<const std::uint32_t> rows,
               const Take& take) {
  std::uint64_t place = 0;
  for (std::uint64_t table = 0; table < shape[1]; ++table) {
    for (const std::uint32_t row : rows) {
      take((table * shape[2] + row) * shape[3], place);
      place += shape[3];
    }
  }
}

template <class T>
void put_rows(const std::vector<double>& item, const std::vector<std::uint64_t>& shape,
              std::span<const std::uint32_t> rows, std::span<T> to) {
  over_rows(shape, rows, [&](std::uint64_t row, std::uint64_t place) {
    put_rounded(std::span(item).subspan(row, shape[3]), to.subspan(place, shape[3]));
  });
}

}  // namespace

void ArrayFile::read_item(const std::string& name, std::uint64_t item, std::span<double> to) {
  put_rounded(std::span<const double>(read(name, item, 1)), to);
}

void ArrayFile::read_item(const std::string& name, std::uint64_t item, std::span<float> to) {
  put_rounded(std::span<const double>(read(name, item, 1)), to);
}

void ArrayFile::read_rows(const std::string& name, std::uint64_t item,
                          std::span<const std::uint32_t> rows, std::span<double> to) {
  put_rows(read(name, item, 1), arrays_.at(name).shape, rows, to);
}

void ArrayFile::read_rows(const std::string& name, std::uint64_t item,
                          std::span<const std::uint32_t> rows, std::span<float> to) {
  put_rows(read(name, item, 1), arrays_.at(name).shape, rows, to);
}

void FlatArrayFile::read_rows(const std::string& name, std::uint64_t item,
                              std::span<const std::uint32_t> rows, std::span<double> to) {
  const std::uint64_t first = item * numbers_in_item(name), columns = arrays_.at(name).shape[3];
  over_rows(arrays_.at(name).shape, rows, [&](std::uint64_t row, std::uint64_t place) {
    numbers(name, first + row, to.subspan(place, columns));
  });
}

void FlatArrayFile::read_rows(const std::string& name, std::uint64_t item,
                              std::span<const std::uint32_t> rows, std::span<float> to) {
  const std::uint64_t first = item * numbers_in_item(name), columns = arrays_.at(name).shape[3];
  over_rows(arrays_.at(name).shape, rows, [&](std::uint64_t row, std::uint64_t place) {
    numbers(name, first + row, to.subspan(place, columns));
  });
}

void FlatArrayFile::read_item(const std::string& name, std::uint64_t item, std::span<double> to) {
  numbers(name, item * numbers_in_item(name), to);
}

void FlatArrayFile::read_item(const std::string& name, std::uint64_t item, std::span<float> to) {
  numbers(name, item * numbers_in_item(name), to);
}

std::vector<double> FlatArrayFile::read(const std::string& name, std::uint64_t first,
                                        std::uint64_t count) {
  const std::uint64_t item = numbers_in_item(name);
  require_file_memory(source_, count * item, sizeof(double));
  std::vector<double> all(count * item);
  numbers(name, first * item, all);
  return all;
}

std::vector<double> ArrayFile::read(const std::string& name) {
  const ArrayInfo& array = arrays_.at(name);
  return read(name, 0, array.shape.empty() ? 1 : array.shape[0]);
}

std::unique_ptr<ArrayFile> open_array_file(const std::string& path, const NamedAxes& axes) {
  const std::string first = first_bytes(path, 4);
  if (first == "PK\3\4" || first == "PK\5\6") return std::make_unique<NpzFile>(path);
  if (first == "\x89HDF" || first.starts_with("CDF")) {
    if (const std::uint64_t size = InputFile(path).size(); size > available_bytes()) {
      reject({path}, "",
             "needs " + format_bytes(size) + " of memory, as NetCDF is read whole, " +
                 available_text() + " - NPZ and safetensors are read part by part");
    }
    try {
      return std::make_unique<NetcdfArrays>(path, axes);
    } catch (const NetcdfError& problem) {
      reject({path}, "", one_line(problem.what()));
    }
  }
  if (!path.ends_with(".safetensors")) {
    read_file(path, std::numeric_limits<std::uint64_t>::max());  // says why not
    reject({path}, "", "is neither NPZ nor safetensors nor NetCDF: it begins with other bytes");
  }
  return std::make_unique<SafetensorsArrays>(path);
}

std::unique_ptr<ArrayFile> open_array_files(const std::vector<std::string>& paths,
                                            const NamedAxes& axes) {
  if (paths.size() == 1) return open_array_file(paths[0], axes);
  return std::make_unique<JoinedFiles>(paths, axes);
}

}  // namespace headlab
