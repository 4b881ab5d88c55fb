// SPDX-License-Identifier: Apache-2.0
#include "engine/files/netcdf/axes.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "engine/files/words.h"

namespace headlab {
namespace {

/// The place of each axis in the file.
std::vector<std::size_t> places_of(const std::vector<std::string>& axes,
                                   const std::vector<std::string>& dimensions,
                                   const std::string& name) {
  std::vector<std::size_t> as_they_stand(dimensions.size()), places;
  std::iota(as_they_stand.begin(), as_they_stand.end(), 0u);
  if (axes.size() != dimensions.size()) return as_they_stand;
  bool some_elsewhere = false;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    const auto at = std::ranges::find(dimensions, axes[axis]);
    if (at == dimensions.end()) continue;
    places.push_back(static_cast<std::size_t>(at - dimensions.begin()));
    some_elsewhere = some_elsewhere || places.back() != axis;
  }
  if (!some_elsewhere) return as_they_stand;
  if (std::set(places.begin(), places.end()).size() == axes.size()) return places;
  throw NetcdfError("variable " + name + " has dimensions " + listed(dimensions) + ", needs " +
                    listed(axes) + ", in any order");
}

/// Numbers along dimensions of the file, row by row, as numbers along axes.
template <class T>
std::vector<T> in_order(std::vector<T> numbers, const std::vector<std::size_t>& places,
                        const std::vector<std::size_t>& shape) {
  if (std::ranges::is_sorted(places) || numbers.empty()) return numbers;
  std::vector<std::size_t> lengths(places.size()), steps(places.size());
  for (std::size_t axis = 0; axis < places.size(); ++axis) lengths[places[axis]] = shape[axis];
  std::vector<std::size_t> file_steps(places.size(), 1);
  for (std::size_t i = places.size() - 1; i > 0; --i) {
    file_steps[i - 1] = file_steps[i] * lengths[i];
  }
  for (std::size_t axis = 0; axis < places.size(); ++axis) steps[axis] = file_steps[places[axis]];
  std::vector<T> ordered;
  ordered.reserve(numbers.size());
  std::vector<std::size_t> index(places.size(), 0);
  std::size_t from = 0;
  while (ordered.size() < numbers.size()) {
    ordered.push_back(numbers[from]);
    for (std::size_t axis = places.size(); axis-- > 0;) {
      from += steps[axis];
      if (++index[axis] < shape[axis]) break;
      from -= steps[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return ordered;
}

}  // namespace

NetcdfArray::NetcdfArray(NetcdfGroup group, std::string name, const std::vector<std::string>& axes)
    : group_(group), name_(std::move(name)) {
  places_ = places_of(axes, group_.dimensions(name_), name_);
  const std::vector<std::size_t> lengths = group_.shape(name_);
  for (const std::size_t place : places_) shape_.push_back(lengths[place]);
}

std::vector<double> NetcdfArray::doubles(const NetcdfGroup::Slab& where) const {
  NetcdfGroup::Slab in_file = where;
  for (std::size_t axis = 0; axis < places_.size() && axis < where.count.size(); ++axis) {
    in_file.start[places_[axis]] = where.start[axis];
    in_file.count[places_[axis]] = where.count[axis];
  }
  return in_order(group_.doubles(name_, in_file), places_, where.count);
}

std::vector<std::int64_t> NetcdfArray::integers() const {
  return in_order(group_.integers(name_), places_, shape_);
}

bool is_coordinate(const NetcdfGroup& group, const std::string& name) {
  return group.has_variable(name) && group.dimensions(name) == std::vector<std::string>{name};
}

void check_coordinate(const NetcdfGroup& group, const std::string& name, bool counted) {
  if (!is_coordinate(group, name)) return;
  const NetcdfGroup::Values values = group.values(name);
  if (std::holds_alternative<std::vector<std::string>>(values)) return;
  const std::vector<std::int64_t> numbers = group.integers(name);
  if (std::set(numbers.begin(), numbers.end()).size() < numbers.size()) {
    throw NetcdfError("variable " + name + " has a number twice");
  }
  for (std::size_t i = 0; counted && i < numbers.size(); ++i) {
    if (numbers[i] == static_cast<std::int64_t>(i)) continue;
    throw NetcdfError("variable " + name + " has " + std::to_string(numbers[i]) + " at place " +
                      std::to_string(i) + ", needs 0, 1, .. in this order - sort by it, or leave " +
                      "it out");
  }
}

}  // namespace headlab
