// SPDX-License-Identifier: Apache-2.0
#include "engine/files/npy_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "engine/files/available_memory.h"
#include "engine/files/document.h"
#include "kernels/counted.h"

namespace headlab {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
/// The data begin at a multiple of this, as NumPy writes it.
constexpr std::size_t alignment = 64;

/// What the header says.
struct Header {
  StoredType type = StoredType::float64;
  bool fortran = false;
  std::vector<std::uint64_t> shape;
};

/// Parses the Python dictionary of an NPY header: three known keys, each once.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& source) : left_(text), source_(source) {}

  Header parse() {
    Header header;
    unsigned seen = 0;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      const unsigned bit = key == "descr" ? 1 : key == "fortran_order" ? 2 : key == "shape" ? 4 : 0;
      if (bit == 0 || (seen & bit) != 0) fail();
      seen |= bit;
      if (bit == 1) read_type(header);
      if (bit == 2) header.fortran = boolean();
      if (bit == 4) header.shape = shape();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (seen != 7 || !left_.empty()) fail();
    return header;
  }

 private:
  [[noreturn]] void fail() const { reject({source_}, "", "has a malformed NPY header"); }

  void skip_space() {
    while (!left_.empty() && (left_[0] == ' ' || left_[0] == '\n')) left_.remove_prefix(1);
  }
  bool accept(char c) {
    skip_space();
    if (left_.empty() || left_[0] != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail();
  }

  std::string_view quoted() {
    skip_space();
    if (left_.empty() || (left_[0] != '\'' && left_[0] != '"')) fail();
    const auto end = left_.find(left_[0], 1);
    if (end == std::string_view::npos) fail();
    const auto text = left_.substr(1, end - 1);
    left_.remove_prefix(end + 1);
    return text;
  }

  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (left_.starts_with(word)) {
        left_.remove_prefix(word.size());
        return word == "True";
      }
    }
    fail();
  }

  std::vector<std::uint64_t> shape() {
    std::vector<std::uint64_t> lengths;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::uint64_t length = 0;
      const auto [end, error] = std::from_chars(left_.data(), left_.data() + left_.size(), length);
      if (error != std::errc()) fail();
      left_.remove_prefix(static_cast<std::size_t>(end - left_.data()));
      lengths.push_back(length);
      if (left_.starts_with('L')) left_.remove_prefix(1);  // as Python 2 wrote it
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return lengths;
  }

  void read_type(Header& header) {
    skip_space();
    if (left_.starts_with('[')) unknown_type("a record");
    const std::string type(quoted());
    const bool ordered = type.size() == 3 && (type[0] == '<' || (type[0] == '|' && type[2] == '1'));
    if (!ordered) unknown_type(type);
    constexpr std::pair<std::string_view, StoredType> types[] = {
        {"f8", StoredType::float64},    {"f4", StoredType::float32},
        {"f2", StoredType::float16},    {"i8", StoredType::signed64},
        {"i4", StoredType::signed32},   {"i2", StoredType::signed16},
        {"i1", StoredType::signed8},    {"u8", StoredType::unsigned64},
        {"u4", StoredType::unsigned32}, {"u2", StoredType::unsigned16},
        {"u1", StoredType::unsigned8},  {"b1", StoredType::unsigned8}};
    const auto found = std::ranges::find(types, std::string_view(type).substr(1),
                                         &std::pair<std::string_view, StoredType>::first);
    if (found == std::end(types)) unknown_type(type);
    header.type = found->second;
  }

  [[noreturn]] void unknown_type(const std::string& type) const {
    reject({source_}, "",
           "holds type " + one_line(type, 40) +
               " (allowed: little-endian floats of 2, 4 or 8 bytes, integers, booleans) - save it "
               "with "
               "array.astype(\"<f8\")");
  }

  std::string_view left_;
  const std::string& source_;
};

/// Goes through the elements of a Fortran-ordered array as C order has them.
class FortranPositions {
 public:
  explicit FortranPositions(const std::vector<std::uint64_t>& shape)
      : shape_(shape), index_(shape.size(), 0) {
    std::size_t stride = 1;
    for (const std::uint64_t length : shape) {
      strides_.push_back(stride);
      stride *= length;
    }
  }
  std::size_t next() {
    const std::size_t here = position_;
    for (std::size_t axis = shape_.size(); axis-- > 0;) {
      position_ += strides_[axis];
      if (++index_[axis] < shape_[axis]) break;
      position_ -= strides_[axis] * shape_[axis];
      index_[axis] = 0;
    }
    return here;
  }

 private:
  const std::vector<std::uint64_t>& shape_;
  std::vector<std::uint64_t> index_;
  std::vector<std::size_t> strides_;
  std::size_t position_ = 0;
};

}  // namespace

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return number;
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string text;
  for (const std::uint64_t length : shape) {
    text += (text.empty() ? "" : " x ") + std::to_string(length);
  }
  return text.empty() ? "a scalar" : text;
}

std::string element_text(const std::vector<std::uint64_t>& shape, std::size_t position) {
  std::string text;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    text = "[" + std::to_string(position % shape[axis]) + "]" + text;
    position /= shape[axis];
  }
  return text;
}

bool is_npy(std::string_view bytes) {
  return bytes.starts_with(magic);
}

namespace {

/// Where the numbers of an array begin, and how many there are.
struct Layout {
  Header header;
  std::uint64_t offset = 0;
  std::uint64_t count = 1;
};

/// Checks the header against `size`, the length of the whole file; `bytes` is all of it, or as much
/// as header_end() says.
Layout layout_of(std::string_view bytes, std::uint64_t size, const std::string& source,
                 std::size_t min_axes, std::size_t max_axes) {
  const auto fail = [&source](const std::string& problem) { reject({source}, "", problem); };
  std::string_view left = bytes;
  if (!is_npy(left)) fail("is not an NPY file: it begins with other bytes");
  if (left.size() < 8) fail("is cut off in the NPY header");
  const int major = static_cast<unsigned char>(left[6]);
  const int minor = static_cast<unsigned char>(left[7]);
  if (major < 1 || major > 3 || minor != 0) {
    fail("has NPY format " + std::to_string(major) + "." + std::to_string(minor) +
         " (allowed: 1.0, 2.0, 3.0)");
  }
  left.remove_prefix(8);
  const std::size_t width = major == 1 ? 2 : 4;
  if (left.size() < width) fail("is cut off in the NPY header");
  const std::uint64_t length = little_endian(left.substr(0, width));
  left.remove_prefix(width);
  if (length > left.size()) fail("is cut off in the NPY header");
  Layout layout{.header = HeaderParser(left.substr(0, length), source).parse()};
  const Header& header = layout.header;
  left.remove_prefix(length);
  layout.offset = bytes.size() - left.size();

  if (header.shape.size() < min_axes || header.shape.size() > max_axes) {
    const std::string allowed =
        std::to_string(min_axes) + (min_axes == max_axes ? "" : " or " + std::to_string(max_axes));
    fail("has " + counted(header.shape.size(), "axis", "axes") + " (allowed: " + allowed + ")");
  }
  std::uint64_t& count = layout.count;
  bool empty = false;
  bool overflow = false;
  for (const std::uint64_t axis : header.shape) {
    empty = empty || axis == 0;
    overflow = __builtin_mul_overflow(count, axis, &count) || overflow;
  }
  if (empty) fail("has no numbers: its shape is " + shape_text(header.shape));
  std::uint64_t wanted = 0;
  const std::uint64_t there = size - layout.offset;
  overflow = overflow || __builtin_mul_overflow(count, bytes_of(header.type), &wanted);
  if (overflow || wanted != there) {
    fail("has " + counted(there, "byte") + " of numbers, its shape " + shape_text(header.shape) +
         " needs " + (overflow ? "another length" : std::to_string(wanted)));
  }

  return layout;
}

[[noreturn]] void fail_not_finite(const std::string& source,
                                  const std::vector<std::uint64_t>& shape, std::size_t position) {
  reject({source}, "", "element " + element_text(shape, position) + " is not finite");
}

NumberKind kind_of(StoredType type) {
  return type == StoredType::float64   ? NumberKind::exact
         : type == StoredType::float32 ? NumberKind::single
         : type == StoredType::float16 ? NumberKind::half
                                       : NumberKind::whole;
}

}  // namespace

std::uint64_t npy_header_end(std::string_view start) {
  const bool short_length = start.size() > 6 && start[6] == 1;
  const std::size_t width = short_length ? 2 : 4;
  return start.size() < 8 + width ? start.size()
                                  : 8 + width + little_endian(start.substr(8, width));
}

NpyParts::NpyParts(std::string_view start, std::uint64_t size, std::string source,
                   std::size_t min_axes, std::size_t max_axes)
    : source_(std::move(source)) {
  Layout layout = layout_of(start, size, source_, min_axes, max_axes);
  type_ = layout.header.type;
  offset_ = layout.offset;
  // One axis alone has one order.
  in_order_ = !layout.header.fortran || layout.header.shape.size() < 2;
  shape_ = std::move(layout.header.shape);
}

NumberKind NpyParts::kind() const {
  return kind_of(type_);
}

void NpyParts::fail_not_finite(std::uint64_t position) const {
  headlab::fail_not_finite(source_, shape_, position);
}

NpyArray parse_npy_array(std::string_view bytes, const std::string& source, std::size_t min_axes,
                         std::size_t max_axes) {
  const auto [header, offset, count] = layout_of(bytes, bytes.size(), source, min_axes, max_axes);
  const std::string_view left = bytes.substr(offset);
  NpyArray array{
      .kind = kind_of(header.type), .shape = header.shape, .values = std::vector<double>(count)};
  convert_run(header.type, left.data(), std::span(array.values));
  if (header.fortran) {
    const std::vector<double> in_file = std::move(array.values);
    FortranPositions fortran(header.shape);
    array.values.clear();
    array.values.reserve(count);
    for (std::size_t i = 0; i < count; ++i) array.values.push_back(in_file[fortran.next()]);
  }
  const auto wrong = first_not_finite(std::span<const double>(array.values));
  if (wrong) fail_not_finite(source, header.shape, *wrong);
  return array;
}

std::optional<std::string> npy_text(std::string_view bytes) {
  const std::uint64_t end = npy_header_end(bytes.substr(0, 12));
  if (!is_npy(bytes) || end > bytes.size()) return {};
  const std::string_view header = bytes.substr(0, end);
  constexpr std::string_view type = "'<U", scalar = "'shape': ()";
  if (header.find(type) == std::string_view::npos ||
      header.find(scalar) == std::string_view::npos) {
    return {};
  }
  // UTF-32, padded with zeros.
  std::string text;
  for (std::size_t at = end; at + 4 <= bytes.size(); at += 4) {
    const std::uint64_t character = little_endian(bytes.substr(at, 4));
    if (character != 0) text += character < 128 ? static_cast<char>(character) : '?';
  }
  return text;
}

NpyRows read_npy_rows(const std::function<void(char*, std::size_t)>& read, std::uint64_t size,
                      const std::string& source) {
  std::string start(std::min<std::uint64_t>(size, 12), '\0');
  read(start.data(), start.size());
  const std::size_t known = start.size();
  start.resize(std::clamp<std::uint64_t>(npy_header_end(start), known, size));
  read(start.data() + known, start.size() - known);
  const auto [header, offset, count] = layout_of(start, size, source, 1, 2);
  // What was read past a header shorter than 12 bytes belongs to the numbers.
  std::string before = start.substr(offset);

  NpyRows table{.rows = header.shape[0], .columns = header.shape.size() == 2 ? header.shape[1] : 1};
  const std::size_t size_of_item = bytes_of(header.type);
  const bool fits_float32 = size_of_item <= 2 || header.type == StoredType::float32;
  require_file_memory(source, count, fits_float32 ? sizeof(float) : sizeof(double));
  if (fits_float32) {
    table.single.resize(count);
  } else {
    table.exact.resize(count);
  }
  std::vector<double> values;
  std::size_t first_wrong = count;
  std::string piece;
  for (std::size_t done = 0; done < count;) {
    const std::size_t items = std::min<std::size_t>(count - done, (1 << 20) / size_of_item);
    piece = std::exchange(before, {});
    const std::size_t there = piece.size();
    piece.resize(items * size_of_item);
    read(piece.data() + there, piece.size() - there);
    values.resize(items);
    convert_run(header.type, piece.data(), std::span(values));
    for (const double value : values) {
      const std::size_t at =
          header.fortran ? done % table.rows * table.columns + done / table.rows : done;
      if (!std::isfinite(value)) first_wrong = std::min(first_wrong, at);
      if (fits_float32) {
        table.single[at] = static_cast<float>(value);
      } else {
        table.exact[at] = value;
      }
      ++done;
    }
  }
  if (first_wrong < count) fail_not_finite(source, header.shape, first_wrong);
  return table;
}

std::string npy_bytes(const std::vector<std::uint64_t>& shape, std::span<const double> values) {
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (";
  std::size_t count = 1;
  for (const std::uint64_t length : shape) {
    header += std::to_string(length) + ", ";
    count *= length;
  }
  header += "), }";
  if (count != values.size()) throw std::logic_error("an NPY file of another shape");
  const std::size_t before = magic.size() + 2 + 2;
  header.append(alignment - 1 - (before + header.size()) % alignment, ' ');
  header += '\n';
  std::string bytes(magic);
  bytes +=
      {'\1', '\0', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return bytes;
}

}  // namespace headlab
