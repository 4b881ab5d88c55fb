// SPDX-License-Identifier: Apache-2.0
#include "engine/table_file.h"

#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>

#include "engine/document.h"
#include "engine/error.h"

namespace headlab {

namespace {

constexpr std::size_t most_table_bytes = std::size_t{4} << 30;
constexpr std::string_view npy_magic = "\x93NUMPY";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// The number that makes up all of `cell`; infinite where it is beyond float64.
std::optional<double> number_of(std::string_view cell) {
  if (cell.size() > 1 && cell[0] == '+' && cell[1] != '-') cell.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  if (end != cell.data() + cell.size() || error == std::errc::invalid_argument) return {};
  if (error == std::errc::result_out_of_range) return HUGE_VAL;
  return number;
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const auto comma = line.find(',');
    cells.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

/// Reads one line of a CSV file at a time.
class CsvReader {
 public:
  explicit CsvReader(const std::string& source) : source_(source) {}

  void add(std::string_view line) {
    ++line_;
    if (trimmed(line).empty()) {
      if (blank_ == 0) blank_ = line_;
      return;
    }
    if (blank_ != 0) fail(blank_, "is blank");
    const auto cells = cells_of(line);
    if (line_ == 1 && is_header(cells)) {
      for (const auto& cell : cells) table_.column_names.push_back(name_of(cell));
      return;
    }
    std::vector<double> row;
    row.reserve(cells.size());
    for (const auto& cell : cells) row.push_back(read(cell, row.size() + 1));
    const std::size_t wanted = table_.rows.empty() ? table_.column_names.size() : table_.columns();
    if (wanted != 0 && row.size() != wanted) {
      fail(line_, "has " + std::to_string(row.size()) + " cells, the lines before have " +
                      std::to_string(wanted));
    }
    table_.rows.push_back(std::move(row));
  }

  DataTable finish() {
    if (table_.rows.empty()) refuse({source_}, "", "has no rows of numbers");
    return std::move(table_);
  }

 private:
  [[noreturn]] void fail(std::size_t line, const std::string& problem) const {
    refuse({source_ + ":" + std::to_string(line)}, "", problem);
  }

  static bool is_header(const std::vector<std::string_view>& cells) {
    for (const auto& cell : cells) {
      if (cell.empty() || number_of(cell)) return false;
    }
    return true;
  }

  std::string name_of(std::string_view cell) const {
    if (cell.front() != '"') return std::string(cell);
    if (cell.size() < 2 || cell.back() != '"')
      fail(line_, "has a comma or an open quote in a name");
    return std::string(cell.substr(1, cell.size() - 2));
  }

  double read(std::string_view cell, std::size_t number) const {
    const std::string where = "cell " + std::to_string(number) + " ";
    if (cell.empty()) fail(line_, where + "is empty");
    const auto value = number_of(cell);
    if (!value) {
      fail(line_, where + "is no number: \"" + one_line(std::string(cell), 40) + "\"");
    }
    if (!std::isfinite(*value)) {
      fail(line_, where + "is not finite: " + one_line(std::string(cell), 40));
    }
    return *value;
  }

  const std::string& source_;
  DataTable table_;
  std::size_t line_ = 0;
  std::size_t blank_ = 0;  ///< number of the first blank line: only the last may be
};

/// What the header of an NPY file says.
struct NpyHeader {
  char kind = 'f';  ///< f, i or u
  std::size_t item = 8;
  bool fortran = false;
  std::vector<std::uint64_t> shape;
};

/// Parses the Python dictionary of an NPY header: three known keys, each once.
class NpyHeaderParser {
 public:
  NpyHeaderParser(std::string_view text, const std::string& source)
      : left_(text), source_(source) {}

  NpyHeader parse() {
    NpyHeader header;
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
  [[noreturn]] void fail() const { refuse({source_}, "", "has a malformed NPY header"); }

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
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return lengths;
  }

  void read_type(NpyHeader& header) {
    skip_space();
    if (left_.starts_with('[')) unknown_type("a record");
    const std::string type(quoted());
    const bool ordered = type.size() == 3 && (type[0] == '<' || (type[0] == '|' && type[2] == '1'));
    if (!ordered) unknown_type(type);
    header.kind = type[1];
    header.item = static_cast<std::size_t>(type[2] - '0');
    const bool sizes_of_float = header.item == 4 || header.item == 8;
    const bool sizes_of_integer = sizes_of_float || header.item == 1 || header.item == 2;
    if (!(header.kind == 'f' && sizes_of_float) &&
        !((header.kind == 'i' || header.kind == 'u') && sizes_of_integer)) {
      unknown_type(type);
    }
  }

  [[noreturn]] void unknown_type(const std::string& type) const {
    refuse({source_}, "",
           "holds type " + one_line(type, 40) +
               " (allowed: little-endian floats of 4 or 8 bytes, integers) - save it with "
               "array.astype(\"<f8\")");
  }

  std::string_view left_;
  const std::string& source_;
};

template <class T>
double item_at(const char* from) {
  T item;
  std::memcpy(&item, from, sizeof item);
  return static_cast<double>(item);
}

double (*item_reader(const NpyHeader& header))(const char*) {
  static_assert(std::endian::native == std::endian::little);
  switch (header.item) {
    case 1:
      return header.kind == 'i' ? item_at<std::int8_t> : item_at<std::uint8_t>;
    case 2:
      return header.kind == 'i' ? item_at<std::int16_t> : item_at<std::uint16_t>;
    case 4:
      if (header.kind == 'f') return item_at<float>;
      return header.kind == 'i' ? item_at<std::int32_t> : item_at<std::uint32_t>;
    default:
      if (header.kind == 'f') return item_at<double>;
      return header.kind == 'i' ? item_at<std::int64_t> : item_at<std::uint64_t>;
  }
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return number;
}

}  // namespace

DataTable parse_csv(const std::string& text, const std::string& source) {
  std::string_view left = text;
  if (left.starts_with("\xef\xbb\xbf")) left.remove_prefix(3);
  CsvReader reader(source);
  while (!left.empty()) {
    const auto end = std::min(left.find('\n'), left.size());
    auto line = left.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    reader.add(line);
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return reader.finish();
}

DataTable parse_npy(const std::string& bytes, const std::string& source) {
  const auto fail = [&source](const std::string& problem) { refuse({source}, "", problem); };
  std::string_view left = bytes;
  if (!left.starts_with(npy_magic)) fail("is no NPY file: it begins with other bytes");
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
  const NpyHeader header = NpyHeaderParser(left.substr(0, length), source).parse();
  left.remove_prefix(length);

  if (header.shape.empty() || header.shape.size() > 2) {
    fail("has " + std::to_string(header.shape.size()) + " axes (allowed: 1 or 2)");
  }
  const std::uint64_t rows = header.shape[0];
  const std::uint64_t columns = header.shape.size() == 2 ? header.shape[1] : 1;
  if (rows == 0 || columns == 0) fail("has no rows of numbers");
  std::uint64_t wanted = 0;
  if (__builtin_mul_overflow(rows, columns, &wanted) ||
      __builtin_mul_overflow(wanted, header.item, &wanted) || wanted != left.size()) {
    fail("has " + std::to_string(left.size()) + " bytes of numbers, its shape " +
         std::to_string(rows) + " x " + std::to_string(columns) + " needs another length");
  }

  const auto read = item_reader(header);
  DataTable table;
  table.rows.assign(rows, std::vector<double>(columns));
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      const std::size_t at = header.fortran ? j * rows + i : i * columns + j;
      table.rows[i][j] = read(left.data() + at * header.item);
      if (!std::isfinite(table.rows[i][j])) {
        fail("element [" + std::to_string(i) + "][" + std::to_string(j) + "] is not finite");
      }
    }
  }
  return table;
}

std::string read_file(const std::string& path, std::size_t most_bytes) {
  const auto fail = [&path](const std::string& problem) { refuse({path}, "", problem); };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) fail("is a directory, needs a file");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(std::string("cannot be opened: ") + std::strerror(errno));
  // In pieces, because a pipe has no size, and a device may have no end.
  std::string content;
  std::vector<char> piece(1 << 20);
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    content.append(piece.data(), static_cast<std::size_t>(in.gcount()));
    if (content.size() > most_bytes) {
      fail("is too long (allowed: at most " + std::to_string(most_bytes >> 20) + " MiB)");
    }
  }
  if (in.bad()) fail("cannot be read");
  return content;
}

DataTable read_table(const std::string& path) {
  const std::string content = read_file(path, most_table_bytes);
  if (content.starts_with(npy_magic) || path.ends_with(".npy")) return parse_npy(content, path);
  return parse_csv(content, path);
}

}  // namespace headlab
