// SPDX-License-Identifier: Apache-2.0
#include "engine/results/netcdf_fields.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace headlab {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

}  // namespace

bool FieldTable::has_without(const std::string& name, const std::string& axis) const {
  const auto at = numbers_.find(name);
  return at != numbers_.end() && std::ranges::count(variables_[at->second].axes, axis) == 0;
}

template <class T>
std::vector<T>& FieldTable::values(const std::string& name, const Axes& axes,
                                   const VariableText& text, const T& none) {
  const auto [at, is_new] = numbers_.try_emplace(name, variables_.size());
  if (is_new) {
    std::size_t size = 1;
    for (const std::string& axis : axes) size *= lengths_.at(axis);
    variables_.push_back({name, axes, text, Values<T>(size, none)});
  }
  Variable& variable = variables_[at->second];
  auto* const all = std::get_if<Values<T>>(&variable.values);
  if (variable.axes != axes || all == nullptr) {
    throw std::logic_error("field " + name + ": has two types or two sets of axes");
  }
  return *all;
}

std::size_t FieldTable::offset_of(const Position& at) const {
  std::size_t offset = 0;
  for (std::size_t i = 0; i < at.axes.size(); ++i) {
    offset = offset * lengths_.at(at.axes[i]) + at.index[i];
  }
  return offset;
}

void FieldTable::put(const std::string& name, const Position& at, const VariableText& text,
                     const Value& value, bool known) {
  const std::size_t offset = offset_of(at);
  std::visit(
      [&](const auto& one) {
        using T = std::decay_t<decltype(one)>;
        T none = {};
        if constexpr (std::is_same_v<T, double>) none = undefined;
        Values<T>& all = values<T>(name, at.axes, text, none);
        if (known) all.at(offset) = one;
      },
      value);
}

void FieldTable::put(const std::string& name, const Position& at, const Axes& axes,
                     const std::vector<std::size_t>& shape, const VariableText& text,
                     std::span<const double> numbers) {
  Axes all_axes = at.axes;
  all_axes.insert(all_axes.end(), axes.begin(), axes.end());
  Values<double>& all = values<double>(name, all_axes, text, undefined);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] > lengths_.at(axes.at(i))) throw std::logic_error("field " + name + ": too long");
  }
  const std::size_t offset = offset_of(at);
  // Row by row along the last axis.
  const std::size_t row = shape.empty() ? 1 : shape.back();
  std::vector<std::size_t> index(shape.size(), 0);
  for (std::size_t from = 0; from < numbers.size(); from += row) {
    std::size_t to = offset;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      to = to * lengths_.at(axes.at(i)) + index[i];
    }
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(from), row,
                all.begin() + static_cast<std::ptrdiff_t>(to));
    for (std::size_t i = shape.size(); i-- > 1;) {
      if (++index[i - 1] < shape[i - 1]) break;
      index[i - 1] = 0;
    }
  }
}

void FieldTable::write(const NetcdfGroup& group) {
  for (Variable& variable : variables_) {
    std::visit(
        [&](auto& all) {
          group.write(variable.name, variable.axes, variable.text, std::move(all));
        },
        variable.values);
  }
}

void NetcdfFields::put_value(const std::string& name, const FieldTable::Value& value,
                             const VariableText& text, bool known) {
  single_.table->put(flat_name(name), single_.at, text, value, known);
}

std::string NetcdfFields::flat_name(const std::string& name) const {
  const bool taken = !item_.empty() && (outside_->has_without(name, item_) ||
                                        arrays_.table->has_without(name, item_));
  return taken ? item_ + "_" + name : name;
}

std::vector<std::string> axes_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

}  // namespace headlab
