// SPDX-License-Identifier: Apache-2.0
#include "engine/files/models/safetensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/input_file.h"
#include "engine/files/json_reader.h"
#include "engine/files/json_syntax.h"
#include "engine/files/npy_file.h"
#include "engine/files/stored_numbers.h"
#include "kernels/counted.h"

namespace headlab {

namespace {

/// The format's own limit.
constexpr std::uint64_t max_header_bytes = 100'000'000;
constexpr std::size_t length_bytes = 8;
/// More than any model has; a shape is printed in errors.
constexpr std::size_t max_tensor_axes = 16;

std::optional<std::uint64_t> bytes_of_type(std::string_view type) {
  constexpr std::pair<std::string_view, std::uint64_t> sizes[] = {
      {"F64", 8},     {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F8_E4M3", 1},
      {"F8_E5M2", 1}, {"I64", 8}, {"I32", 4}, {"I16", 2},  {"I8", 1},
      {"U64", 8},     {"U32", 4}, {"U16", 2}, {"U8", 1},   {"BOOL", 1}};
  for (const auto& [name, size] : sizes) {
    if (name == type) return size;
  }
  return {};
}

/// That of a tensor whose numbers are read.
std::optional<StoredType> type_named(std::string_view name) {
  constexpr std::pair<std::string_view, StoredType> types[] = {
      {"F64", StoredType::float64},   {"F32", StoredType::float32},  {"F16", StoredType::float16},
      {"BF16", StoredType::bfloat16}, {"I64", StoredType::signed64}, {"I32", StoredType::signed32},
      {"I16", StoredType::signed16},  {"I8", StoredType::signed8},   {"U8", StoredType::unsigned8},
      {"BOOL", StoredType::unsigned8}};
  for (const auto& [known, type] : types) {
    if (known == name) return type;
  }
  return {};
}

/// To nearest, halves to even.
std::uint16_t to_bfloat(double number) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(number));
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// The same; infinity where the number is too large.
std::uint16_t to_half(double number) {
  constexpr int least = -24, digits = 11, bias = 15;
  const unsigned sign = std::signbit(number) ? 0x8000 : 0;
  int exponent = 0;
  std::frexp(number, &exponent);
  const bool normal = number != 0 && exponent - digits >= least;
  const int quantum = normal ? exponent - digits : least;
  const double steps = std::nearbyint(std::ldexp(std::abs(number), -quantum));
  if (exponent > bias + 2) return static_cast<std::uint16_t>(sign | 0x7c00);
  const int offset = normal ? (exponent - 2 + bias) * 1024 : 0;
  const unsigned bits = static_cast<unsigned>(offset + static_cast<int>(steps));
  return static_cast<std::uint16_t>(sign | std::min(bits, 0x7c00U));
}

/// Takes the header event by event, so that nothing but its known shape is ever stored:
/// { "__metadata__": { text: text }, NAME: { "dtype": text, "shape": [n], "data_offsets": [n, n] }
/// }
class HeaderHandler : public JsonHandler {
 public:
  TensorTable tensors;
  std::map<std::string, std::string> texts;  ///< of the metadata
  std::string problem;

  bool begin_object() override {
    if (place_ == Place::outside) return go(Place::names);
    if (place_ == Place::named) return go(is_metadata_ ? Place::metadata : Place::tensor);
    return malformed();
  }

  bool key(std::string name) override {
    if (place_ == Place::names) {
      is_metadata_ = name == "__metadata__";
      if (is_metadata_) return (metadata_++ == 0 || twice(name)) && go(Place::named);
      const auto [at, added] = tensors.try_emplace(name);
      if (!added) return twice(name);
      tensor_ = &at->second;
      name_ = name;
      seen_ = 0;
      return go(Place::named);
    }
    if (place_ == Place::metadata) {
      text_ = &texts[name];
      return true;
    }
    if (place_ != Place::tensor) return malformed();
    field_ = name == "dtype" ? 1 : name == "shape" ? 2 : name == "data_offsets" ? 4 : 0;
    if (field_ == 0 || (seen_ & field_) != 0) return malformed();
    seen_ |= field_;
    return true;
  }

  bool scalar(Value::Data value) override {
    if (auto* text = std::get_if<std::string>(&value)) return string(*text);
    const std::optional<std::uint64_t> count = count_of({std::move(value), {}});
    return count ? number(*count) : malformed();
  }

  bool begin_array() override {
    if (place_ != Place::tensor || (field_ != 2 && field_ != 4)) return malformed();
    offsets_ = 0;
    return go(Place::numbers);
  }

  bool end_array() override {
    if (place_ != Place::numbers || (field_ == 4 && offsets_ != 2)) return malformed();
    field_ = 0;
    return go(Place::tensor);
  }

  bool end_object() override {
    if (place_ == Place::tensor)
      return (seen_ == 7 && field_ == 0) ? go(Place::names) : malformed();
    if (place_ == Place::metadata) return go(Place::names);
    return place_ == Place::names ? go(Place::after) : malformed();
  }

  void no_json(std::size_t byte) override {
    problem = "has a malformed safetensors header: no JSON at byte " + std::to_string(byte);
  }

 private:
  enum class Place { outside, names, named, metadata, tensor, numbers, after };

  bool string(const std::string& text) {
    if (place_ == Place::metadata) {
      *text_ = text;
      return true;
    }
    if (place_ != Place::tensor || field_ != 1) return malformed();
    field_ = 0;
    tensor_->type = text;
    return true;
  }
  bool number(std::uint64_t number) {
    if (place_ != Place::numbers) return malformed();
    if (field_ == 2) {
      if (tensor_->shape.size() == max_tensor_axes) return malformed();
      tensor_->shape.push_back(number);
      return true;
    }
    if (offsets_ == 2) return malformed();
    (offsets_++ == 0 ? tensor_->begin : tensor_->end) = number;
    return true;
  }

  bool go(Place place) {
    place_ = place;
    return true;
  }
  bool malformed() {
    problem = "has a malformed safetensors header";
    if (!name_.empty()) problem += " at tensor \"" + one_line(name_, 80) + "\"";
    return false;
  }
  bool twice(const std::string& name) {
    problem = "has tensor \"" + one_line(name, 80) + "\" twice";
    return false;
  }

  Place place_ = Place::outside;
  bool is_metadata_ = false;
  int metadata_ = 0;
  TensorInfo* tensor_ = nullptr;
  std::string* text_ = nullptr;  ///< of the metadata, which comes next
  std::string name_;
  unsigned seen_ = 0;   ///< fields of the tensor so far: 1 dtype, 2 shape, 4 data_offsets
  unsigned field_ = 0;  ///< the one whose value comes next
  int offsets_ = 0;
};

std::string of_tensor(const std::string& name) {
  return "tensor \"" + one_line(name, 80) + "\" ";
}

/// Type, shape and place of one tensor fit one another.
void check_tensor(const std::string& name, const TensorInfo& tensor, std::uint64_t data_bytes,
                  const std::string& source) {
  const auto fail = [&](const std::string& problem) {
    reject({source}, "", of_tensor(name) + problem);
  };
  if (tensor.begin > tensor.end || tensor.end > data_bytes) {
    fail("has bytes " + std::to_string(tensor.begin) + " to " + std::to_string(tensor.end) +
         " of the " + std::to_string(data_bytes) + " there are" +
         (tensor.begin > tensor.end ? "" : " - is the file cut short?"));
  }
  // A type that is not known matters where the tensor is read.
  const auto size = bytes_of_type(tensor.type);
  if (!size) return;
  std::uint64_t wanted = *size;
  bool overflow = false;
  for (const std::uint64_t length : tensor.shape) {
    overflow = __builtin_mul_overflow(wanted, length, &wanted) || overflow;
  }
  if (overflow || wanted != tensor.end - tensor.begin) {
    fail("has " + counted(tensor.end - tensor.begin, "byte") + ", its shape " +
         shape_text(tensor.shape) + " of " + tensor.type + " needs another length");
  }
}

/// The tensors lie one after the other and take all of the data.
void check_cover(const TensorTable& tensors, std::uint64_t data_bytes, const std::string& source) {
  std::vector<const TensorTable::value_type*> in_order;
  for (const auto& tensor : tensors) in_order.push_back(&tensor);
  std::ranges::sort(in_order, {}, [](const auto* tensor) {
    return std::pair(tensor->second.begin, tensor->second.end);
  });
  std::uint64_t at = 0;
  for (const auto* tensor : in_order) {
    if (tensor->second.begin != at) {
      reject({source}, "",
             of_tensor(tensor->first) + "begins at byte " + std::to_string(tensor->second.begin) +
                 ", the one before ends at " + std::to_string(at));
    }
    at = tensor->second.end;
  }
  if (at != data_bytes) {
    reject({source}, "",
           "has " + counted(data_bytes, "byte") + " of numbers, its tensors take " +
               std::to_string(at));
  }
}

}  // namespace

std::string tensor_bytes(const std::string& type, std::span<const double> numbers) {
  std::string bytes;
  const auto put = [&](auto number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  bytes.reserve(numbers.size() * bytes_of_type(type).value());
  for (const double number : numbers) {
    if (type == "F64") {
      put(number);
    } else if (type == "F32") {
      put(static_cast<float>(number));
    } else {
      put(type == "F16" ? to_half(number) : to_bfloat(number));
    }
  }
  return bytes;
}

TensorTable parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                     const std::string& source,
                                     std::map<std::string, std::string>* metadata) {
  HeaderHandler handler;
  // The parser would skip a byte order mark.
  if (!text.starts_with('{'))
    reject({source}, "", "has a safetensors header that is not an object");
  if (!read_json(text, handler)) {
    reject({source}, "", handler.problem);
  }
  for (const auto& [name, tensor] : handler.tensors) {
    check_tensor(name, tensor, data_bytes, source);
  }
  check_cover(handler.tensors, data_bytes, source);
  if (metadata != nullptr) *metadata = std::move(handler.texts);
  return std::move(handler.tensors);
}

SafetensorsFile::SafetensorsFile(const std::string& path)
    : SafetensorsFile(open_regular(path), path) {}

SafetensorsFile::SafetensorsFile(std::unique_ptr<std::istream> bytes, std::string source)
    : bytes_(std::move(bytes)), source_(std::move(source)) {
  read_header();
}

void SafetensorsFile::read_header() {
  const auto fail = [this](const std::string& problem) { reject({source_}, "", problem); };
  bytes_->seekg(0, std::ios::end);
  const std::streamoff end = bytes_->tellg();
  if (end < 0) fail("cannot be read");
  const auto size = static_cast<std::uint64_t>(end);
  if (size < length_bytes) fail("is not a safetensors file: it has fewer than 8 bytes");
  constexpr std::uint64_t tells_pointer = 64;
  const std::string start = read_bytes(*bytes_, source_, 0, std::min(size, tells_pointer));
  reject_pointer(source_, start);
  const std::uint64_t length = little_endian(start.substr(0, length_bytes));
  if (length > size - length_bytes || length > max_header_bytes) {
    fail(
        "is not a safetensors file: it begins with other bytes - give the model's folder, or its "
        "file that ends in .safetensors");
  }
  const std::string header = read_bytes(*bytes_, source_, length_bytes, length);
  data_ = length_bytes + length;
  tensors_ = parse_safetensors_header(header, size - data_, source_, &metadata_);
}

std::vector<double> SafetensorsFile::read(const std::string& name) {
  const TensorInfo& tensor = tensors_.at(name);
  if (!is_float_tensor(tensor)) {
    reject({source_}, "",
           of_tensor(name) + "has type " + tensor.type + " (allowed: F64, F32, F16, BF16)");
  }
  std::vector<double> numbers((tensor.end - tensor.begin) / *bytes_of_type(tensor.type));
  read_part(name, 0, std::span(numbers));
  return numbers;
}

template <class T>
void SafetensorsFile::read_part(const std::string& name, std::uint64_t first, std::span<T> to) {
  const auto fail = [&](const std::string& problem) {
    reject({source_}, "", of_tensor(name) + problem);
  };
  const TensorInfo& tensor = tensors_.at(name);
  const std::optional<StoredType> type = type_named(tensor.type);
  if (!type) fail("has type " + tensor.type + ", which is not read");
  const std::uint64_t size = bytes_of(*type);
  const auto wrong = read_numbers(*type, to, [&](std::uint64_t done, std::span<char> bytes) {
    read_bytes(*bytes_, source_, data_ + tensor.begin + (first + done) * size, bytes);
  });
  if (wrong) fail("has a number that is not finite");
}

template void SafetensorsFile::read_part(const std::string&, std::uint64_t, std::span<float>);
template void SafetensorsFile::read_part(const std::string&, std::uint64_t, std::span<double>);

bool is_float_tensor(const TensorInfo& tensor) {
  return tensor.type == "F64" || tensor.type == "F32" || tensor.type == "F16" ||
         tensor.type == "BF16";
}

}  // namespace headlab
