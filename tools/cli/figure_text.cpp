// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/figure_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <sys/ioctl.h>
#include <unistd.h>

#include "engine/files/words.h"
#include "kernels/host.h"
#include "tools/cli/characters.h"

namespace headlab::tools {
namespace {

constexpr const char* dash = "–";
constexpr std::string_view plus_minus = "±";

/// Exponent of the leading digit once `number` is rounded to two digits.
int exponent_of_two_digits(double number) {
  const std::string text = formatted("%.1e", number);
  return std::stoi(text.substr(text.find('e') + 1));
}

std::string pair_text(double value, double error, int decimals) {
  return formatted("%.*f", decimals, value) + " ± " + formatted("%.*f", decimals, error);
}

}  // namespace

std::string short_number(double number, int digits) {
  return std::isnan(number) ? dash : formatted("%.*g", digits, number);
}

std::vector<std::string> with_few_digits(std::vector<std::string> numbers) {
  constexpr std::size_t long_text = 8;
  std::map<std::string, std::string> number_of;
  std::vector<std::string> texts;
  for (const std::string& written : numbers) {
    double number = 0;
    const char* end = written.data() + written.size();
    const auto [read, error] = std::from_chars(written.data(), end, number);
    if (error != std::errc() || read != end) return numbers;
    std::string text = written;
    if (written.size() > long_text && number != std::floor(number)) {
      std::array<char, 32> digits{};
      const auto made = std::to_chars(digits.data(), digits.data() + digits.size(), number,
                                      std::chars_format::general, 4);
      text.assign(digits.data(), made.ptr);
    }
    if (number_of.try_emplace(text, written).first->second != written) return numbers;
    texts.push_back(std::move(text));
  }
  return texts;
}

std::string count_text(double count, int digits) {
  constexpr double longest = 1e15;
  if (!(count < longest)) return short_number(count);
  const double unit =
      std::pow(10.0, std::max(0.0, std::floor(std::log10(std::max(count, 1.0))) + 1 - digits));
  const double rounded = std::round(count / unit) * unit;
  return rounded >= 0 ? grouped(static_cast<std::uint64_t>(rounded)) : formatted("%.0f", rounded);
}

std::string fixed_number(double number, int decimals) {
  return std::isnan(number) ? dash : formatted("%.*f", decimals, number);
}

std::string figure_text(const Estimate& figure, int max_decimals) {
  const double value = figure.value, mcse = figure.mcse;
  if (std::isnan(value)) return dash;
  if (std::isnan(mcse)) return short_number(value) + " ± " + dash;
  if (mcse == 0) return formatted("%.6g", value) + " ± 0";
  // A standard error that is rounding alone says nothing about digits.
  if (mcse < 1e-9 * std::abs(value) || !std::isfinite(mcse) || !std::isfinite(value)) {
    return formatted("%.10g", value) + " ± " + formatted("%.1e", mcse);
  }
  const int decimals = 1 - exponent_of_two_digits(mcse);
  const double largest = std::max(std::abs(value), mcse);
  const int exponent = static_cast<int>(std::floor(std::log10(largest)));
  if ((decimals <= max_decimals || exponent >= -1) && largest < 1e9) {
    return pair_text(value, mcse, std::max(decimals, 0));
  }
  const double scale = std::pow(10.0, -exponent);
  return "(" + pair_text(value * scale, mcse * scale, std::max(decimals + exponent, 0)) + ")e" +
         formatted("%+03d", exponent);
}

std::string compact_figure_text(const Estimate& figure, int exponent) {
  // In two steps, because 10^320 is beyond float64.
  const double scale = std::pow(10.0, -exponent / 2);
  const double rest = std::pow(10.0, -exponent - (-exponent / 2));
  const double value = figure.value * scale * rest;
  const double mcse = figure.mcse * scale * rest;
  if (std::isnan(value)) return dash;
  if (std::isnan(mcse)) return short_number(value) + "(" + dash + ")";
  if (mcse == 0) return formatted("%.6g", value) + "(0)";
  if (mcse < 1e-9 * std::abs(value) || !std::isfinite(mcse) || !std::isfinite(value)) {
    return formatted("%.10g", value) + "(" + formatted("%.1e", mcse) + ")";
  }
  const int decimals = std::max(1 - exponent_of_two_digits(mcse), 0);
  return formatted("%.*f", decimals, value) + "(" +
         formatted("%.0f", mcse * std::pow(10.0, decimals)) + ")";
}

std::string scientific_figure_text(const Estimate& figure) {
  const double size = std::fmax(std::abs(figure.value), figure.mcse);
  if (!(size > 0) || !std::isfinite(size) || (size >= 1e-3 && size < 1e5)) {
    // One whose error is far below it has no digits to lose.
    const bool certain = figure.mcse < 1e-6 * size;
    return compact_figure_text(certain ? Estimate{figure.value, 0} : figure, 0);
  }
  const int exponent = static_cast<int>(std::floor(std::log10(size)));
  return compact_figure_text(figure, exponent) + "e" + std::to_string(exponent);
}

std::string computed_text(const Remainder& figure) {
  const auto [value, remainder] = figure;
  if (std::isnan(value)) return dash;
  const std::string text = formatted("%.6g", value);
  // Below the rounding of the value a remainder is none.
  const bool shown = std::abs(remainder) > 1e-13 * std::abs(value);
  return shown ? text + " (<" + formatted("%.1e", std::abs(remainder)) + ")" : text;
}

std::string z_text(double z) {
  return std::isnan(z) ? "–" : short_number(std::round(100 * z) / 100);
}

std::string duration_text(double seconds) {
  if (std::isnan(seconds)) return dash;
  if (seconds < 9.95) return formatted("%.1f s", std::max(seconds, 0.0));
  const double whole = std::round(std::min(seconds, 3.6e9));
  if (whole < 60) return formatted("%.0f s", whole);
  if (whole < 3600)
    return formatted("%.0f min %02.0f s", std::floor(whole / 60), std::fmod(whole, 60));
  return formatted("%.0f h %02.0f min", std::floor(whole / 3600),
                   std::floor(std::fmod(whole, 3600) / 60));
}

std::size_t display_width(std::string_view text) {
  if (!shows_utf8()) return ascii_text(text).size();
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string right(std::string_view text, std::size_t width) {
  const std::size_t used = display_width(text);
  return std::string(width > used ? width - used : 0, ' ').append(text);
}

std::string left(std::string_view text, std::size_t width) {
  const std::size_t used = display_width(text);
  return std::string(text).append(width > used ? width - used : 0, ' ');
}

void align_figures(std::vector<std::string>& cells) {
  // Each cell is cut before its decimal point and before its ±.
  struct Parts {
    std::string_view whole, decimals, error;
  };
  std::vector<Parts> parts;
  std::size_t whole = 0, decimals = 0, error = 0;
  for (const std::string& cell : cells) {
    const std::string_view text = cell;
    const std::size_t sign = std::min(text.find(plus_minus), text.size());
    const std::size_t point = std::min(text.substr(0, sign).find_first_of(". "), sign);
    parts.push_back({text.substr(0, point), text.substr(point, sign - point), text.substr(sign)});
    whole = std::max(whole, display_width(parts.back().whole));
    decimals = std::max(decimals, display_width(parts.back().decimals));
    error = std::max(error, display_width(parts.back().error));
  }
  std::vector<std::string> aligned;
  for (const Parts& part : parts) {
    aligned.push_back(right(part.whole, whole) + left(part.decimals, decimals) +
                      left(part.error, error));
  }
  cells = std::move(aligned);
}

std::string and_listed(const std::vector<std::string>& words) {
  if (std::ranges::all_of(words, [&](const std::string& word) { return word == words[0]; })) {
    return words.empty() ? "" : words[0];
  }
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 < words.size() ? ", " : " and ") + words[i];
  }
  return text;
}

std::string bar(double share, std::size_t width) {
  static constexpr const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(share > 0)) return "";
  const double steps = std::round(std::min(share, 1.0) * 8 * static_cast<double>(width));
  const auto count = static_cast<std::size_t>(steps);
  std::string text;
  for (std::size_t i = 0; i < count / 8; ++i) text += "█";
  return text + eighths[count % 8];
}

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
