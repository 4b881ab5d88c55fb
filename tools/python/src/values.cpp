// SPDX-License-Identifier: Apache-2.0
#include "tools/python/src/values.h"

#include <cstdint>
#include <memory>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <string_view>
#include <type_traits>

#include "engine/files/error.h"
#include "engine/scenario/scenario.h"

/// Of the HDF5 below NetCDF, where it is in a library that can be seen.
extern "C" int H5Eset_auto2(std::int64_t stack, void* print, void* data) __attribute__((weak));

namespace headlab::python {

namespace nb = nanobind;

namespace {

constexpr int max_depth = 32;

using AnyArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

std::string member_key(const std::string& key, const std::string& name) {
  return key.empty() ? name : key + "." + name;
}

[[noreturn]] void reject_object(const std::string& key, const std::string& problem) {
  reject(Location{}, key.empty() ? "scenario" : key, problem);
}

std::string python_type(nb::handle object) {
  return nb::cast<std::string>(nb::str(nb::handle(object.type()).attr("__name__")));
}

/// UTF-8 text; a str may hold halves of surrogate pairs, which have none.
std::string text_of(nb::handle object, const std::string& key) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (text == nullptr) {
    PyErr_Clear();
    reject_object(key, "is text that cannot be written as UTF-8");
  }
  return {text, static_cast<std::size_t>(size)};
}

/// Nested arrays of the numbers from `next` on.
template <class T>
Value array_of(const T*& next, const AnyArray& array, std::size_t axis) {
  if (axis == array.ndim()) {
    const T number = *next++;
    if constexpr (std::is_same_v<T, bool>) return {number, {}};
    if constexpr (std::is_floating_point_v<T>) return {static_cast<double>(number), {}};
    return {static_cast<std::int64_t>(number), {}};
  }
  Value::Array elements;
  elements.reserve(array.shape(axis));
  for (std::size_t i = 0; i < array.shape(axis); ++i) {
    elements.push_back(array_of(next, array, axis + 1));
  }
  return {std::move(elements), {}};
}

template <class T>
bool read_numbers(const AnyArray& array, Value& value) {
  if (array.dtype() != nb::dtype<T>()) return false;
  const T* next = static_cast<const T*>(array.data());
  value = array_of(next, array, 0);
  return true;
}

Value value_of(nb::handle object, const std::string& key, int depth) {
  if (depth > max_depth) reject_object(key, "is nested deeper than 32 levels");
  PyObject* const it = object.ptr();
  if (PyBool_Check(it)) return {it == Py_True, {}};
  if (PyLong_Check(it)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(it, &overflow);
    if (overflow != 0) reject_object(key, "is a whole number beyond 64 bits");
    return {std::int64_t{number}, {}};
  }
  if (PyFloat_Check(it)) return {PyFloat_AsDouble(it), {}};
  if (PyUnicode_Check(it)) return {text_of(object, key), {}};
  if (PyDict_Check(it)) {
    Value::Members members;
    for (const auto [name, member] : nb::borrow<nb::dict>(object)) {
      if (!PyUnicode_Check(name.ptr())) {
        reject_object(key, "has a key that is not text but of type " + python_type(name));
      }
      const std::string text = text_of(name, key);
      members.push_back({text, {}, value_of(member, member_key(key, text), depth + 1)});
    }
    return {std::move(members), {}};
  }
  if (PyList_Check(it) || PyTuple_Check(it)) {
    Value::Array elements;
    std::size_t i = 0;
    for (const nb::handle element : nb::borrow(object)) {
      elements.push_back(value_of(element, key + "[" + std::to_string(i++) + "]", depth + 1));
    }
    return {std::move(elements), {}};
  }
  if (AnyArray array; nb::try_cast<AnyArray>(object, array, false)) {
    if (depth + static_cast<int>(array.ndim()) > max_depth) {
      reject_object(key, "is nested deeper than 32 levels");
    }
    Value value;
    if (read_numbers<double>(array, value) || read_numbers<float>(array, value) ||
        read_numbers<std::int64_t>(array, value) || read_numbers<bool>(array, value)) {
      return value;
    }
  }
  if (it == Py_None) reject_object(key, "is None - leave it out");
  reject_object(key, "is of type " + python_type(object) +
                         " (allowed: dict, list, tuple, str, bool, int, float, arrays of numbers)");
}

nb::object array_object(const std::vector<std::string>& values, const std::vector<std::size_t>&) {
  nb::list list;
  for (const std::string& text : values) list.append(nb::str(text.data(), text.size()));
  return list;
}

nb::dict attributes_object(
    const std::vector<std::pair<std::string, NetcdfGroup::Attribute>>& attributes) {
  nb::dict all;
  for (const auto& [name, value] : attributes) {
    all[nb::str(name.c_str())] = std::visit([](const auto& one) { return nb::cast(one); }, value);
  }
  return all;
}

/// What the reader says of the file that stands for an array, said of the array itself.
std::string about_arrays(const std::string& message, const DataArrays& arrays) {
  for (const auto& [name, array] : arrays) {
    const std::string key = name.substr(0, name.rfind('-'));
    const std::string of_file = key + ".path: ";
    if (!message.starts_with(of_file)) continue;
    std::string_view problem = std::string_view(message).substr(of_file.size());
    if (constexpr std::string_view law = "file: "; problem.starts_with(law)) {
      problem.remove_prefix(law.size());
    }
    return key + ": " + std::string(problem);
  }
  return message;
}

}  // namespace

Value document_of(nb::handle object) {
  Value document = value_of(object, "", 0);
  if (!std::holds_alternative<Value::Members>(document.data)) {
    reject_object("", std::string("is ") + document.kind() + ", needs a table");
  }
  return document;
}

DataArrays arrays_of(nb::dict arrays) {
  DataArrays all;
  for (const auto [name, object] : arrays) {
    const auto array = nb::cast<AnyArray>(object);
    DataArray& one = all[nb::cast<std::string>(name)];
    for (std::size_t i = 0; i < array.ndim(); ++i) one.shape.push_back(array.shape(i));
    if (array.dtype() == nb::dtype<float>()) {
      one.single = static_cast<const float*>(array.data());
    } else if (array.dtype() == nb::dtype<double>()) {
      one.exact = static_cast<const double*>(array.data());
    } else {
      throw InvalidInput(nb::cast<std::string>(name) + ": needs numbers of float32 or float64");
    }
    // Taken and let go with the GIL, wherever the last copy ends.
    one.owner = std::shared_ptr<const void>(new nb::object(nb::borrow(object)), [](const void* p) {
      const nb::gil_scoped_acquire held;
      delete static_cast<const nb::object*>(p);
    });
  }
  return all;
}

GroupContent content_of(const NetcdfGroup& group) {
  GroupContent content{
      .name = std::string(), .attributes = group.attributes(), .variables = {}, .groups = {}};
  for (const std::string& name : group.variables()) {
    content.variables.push_back({.name = name,
                                 .dimensions = group.dimensions(name),
                                 .shape = group.shape(name),
                                 .values = group.values(name),
                                 .attributes = group.attributes(name)});
  }
  for (const std::string& name : group.groups()) {
    content.groups.push_back(content_of(group.find_group(name)));
    content.groups.back().name = name;
  }
  return content;
}

nb::dict object_of(GroupContent content) {
  nb::dict variables, groups, all;
  for (GroupContent::Variable& variable : content.variables) {
    const nb::object values = std::visit(
        [&](auto& one) { return array_object(std::move(one), variable.shape); }, variable.values);
    variables[nb::str(variable.name.c_str())] = nb::make_tuple(
        nb::tuple(nb::cast(variable.dimensions)), nb::tuple(nb::cast(variable.shape)), values,
        attributes_object(variable.attributes));
  }
  for (GroupContent& group : content.groups) {
    const nb::str name(group.name.c_str());
    groups[name] = object_of(std::move(group));
  }
  all["attributes"] = attributes_object(content.attributes);
  all["variables"] = variables;
  all["groups"] = groups;
  return all;
}

std::unique_lock<std::mutex> use_netcdf() {
  static std::mutex mutex;
  std::unique_lock lock(mutex);
  // NetCDF has HDF5 print nothing in the thread that came first alone.
  if (H5Eset_auto2 != nullptr) H5Eset_auto2(0, nullptr, nullptr);
  return lock;
}

Scenario ScenarioSource::read(const ReadHooks& hooks) const {
  const auto lock = use_netcdf();
  switch (kind) {
    case Kind::file:
      return read_scenario(text, sets, hooks);
    case Kind::text:
      return parse_scenario(text, "TOML text", sets, directory, hooks);
    case Kind::document:
      break;
  }
  try {
    return read_scenario(document, "scenario of Python", sets, directory, arrays, hooks);
  } catch (const InvalidInput& error) {
    throw InvalidInput(about_arrays(error.what(), arrays));
  }
}

}  // namespace headlab::python
