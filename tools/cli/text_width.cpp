// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/text_width.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kernels/host.h"
#include "tools/cli/figure_text.h"

namespace headlab::tools {

namespace {

/// Columns of the terminal behind a descriptor, 0 where there is none.
std::size_t terminal_width(int descriptor) {
  winsize size = {};
  if (::isatty(descriptor) != 1) return 0;
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

std::size_t error_width() {
  return terminal_width(STDERR_FILENO);
}

std::size_t output_width() {
  if (const char* columns = environment_variable("COLUMNS")) {
    std::size_t width = 0;
    const char* end = columns + std::strlen(columns);
    const auto read = std::from_chars(columns, end, width);
    if (read.ec == std::errc() && read.ptr == end && width > 0) return width;
  }
  return terminal_width(STDOUT_FILENO);
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  if (width == 0) return std::string(text);
  std::string all;
  std::size_t used = 0;    // columns of the line under way
  bool breakable = false;  // the line has a word
  while (!text.empty()) {
    if (text.front() == '\n') {
      all += '\n';
      text.remove_prefix(1);
      used = 0;
      breakable = false;
      continue;
    }
    // Spaces and the word behind them.
    const std::size_t word = std::min(text.find_first_not_of(' '), text.size());
    const std::size_t end = std::min(text.find_first_of(" \n", word), text.size());
    const std::size_t columns = display_width(text.substr(0, end));
    if (breakable && used + columns > width) {
      all += '\n' + std::string(indent, ' ');
      text.remove_prefix(word);
      used = indent;
      breakable = false;
      continue;
    }
    all += text.substr(0, end);
    used += columns;
    breakable = breakable || end > word;
    text.remove_prefix(end);
  }
  return all;
}

std::string wrapped_columns(std::string_view text, std::size_t width) {
  std::string all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::size_t gap = line.rfind("  ");
    const std::size_t column =
        gap == std::string_view::npos ? 0 : std::min(line.find_first_not_of(' ', gap), end);
    all += wrapped(line, width, display_width(line.substr(0, column)));
    if (end < text.size()) all += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

std::string sentences(std::string_view lines) {
  return wrapped(lines, output_width(), 2);
}

}  // namespace headlab::tools
