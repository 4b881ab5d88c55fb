// SPDX-License-Identifier: Apache-2.0
#include "engine/files/json_sum.h"

#include <span>

#include "engine/files/document.h"
#include "engine/files/error.h"

namespace headlab {
namespace {

constexpr std::string_view white_space = " \t\r\n";

/// Takes `end` and the white space before it from the end of a text; false where it ends otherwise.
bool take_end(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  text = text.substr(0, text.find_last_not_of(white_space) + 1);
  return true;
}

}  // namespace

void JsonSum::add(std::string_view piece) {
  kept_.clear();
  for (const char c : piece) {
    if (in_string_) {
      in_string_ = escaped_ || c != '"';
      escaped_ = !escaped_ && c == '\\';
    } else if (white_space.find(c) != std::string_view::npos) {
      continue;
    } else {
      in_string_ = c == '"';
    }
    kept_ += c;
  }
  sum_.add(std::as_bytes(std::span(kept_)));
}

bool check_json_sum(const std::string& path, std::string_view text, const std::string& advice) {
  std::string_view rest = text;
  if (!take_end(rest, "") || !take_end(rest, "}") || !rest.ends_with('"')) return false;
  rest.remove_suffix(1);
  if (rest.size() < sha256_digits) return false;
  const std::string_view stated = rest.substr(rest.size() - sha256_digits);
  rest.remove_suffix(sha256_digits);
  const std::string key = '"' + std::string(json_sum_key) + '"';
  if (!take_end(rest, "\"") || !take_end(rest, ":") || !take_end(rest, key) ||
      !rest.ends_with(',')) {
    return false;
  }
  rest.remove_suffix(1);
  JsonSum sum;
  sum.add(rest);
  if (sum.digest() == stated) return true;
  throw InvalidInput(one_line(path) + ": is damaged: its text has another sum" + advice);
}

}  // namespace headlab
