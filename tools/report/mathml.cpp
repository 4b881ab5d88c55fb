// SPDX-License-Identifier: Apache-2.0
#include "tools/report/mathml.h"

#include "tools/report/markup.h"

namespace headlab::tools {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return (c >= '0' && c <= '9') || c == '.';
}

/// Reads a formula from left to right.
class FormulaReader {
 public:
  explicit FormulaReader(std::string_view text) : text_(text) {}

  /// Items up to the end, or to a closing brace.
  std::string row() {
    std::string items;
    for (skip_spaces(); at_ < text_.size() && text_[at_] != '}'; skip_spaces()) {
      items += scripted();
    }
    return items;
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool takes(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string group() {
    if (!takes('{')) return atom();
    std::string items = row();
    takes('}');
    return element("mrow", items);
  }
  std::string scripted() {
    const std::string base = group();
    const bool sum = base == "<mo>∑</mo>";
    std::string below, above;
    while (at_ < text_.size() && (text_[at_] == '_' || text_[at_] == '^')) {
      std::string& script = text_[at_++] == '_' ? below : above;
      script = group();
    }
    if (below.empty() && above.empty()) return base;
    if (above.empty()) return element(sum ? "munder" : "msub", base + below);
    if (below.empty()) return element(sum ? "mover" : "msup", base + above);
    return element(sum ? "munderover" : "msubsup", base + below + above);
  }
  std::string atom() {
    skip_spaces();
    if (at_ >= text_.size()) return "<mrow></mrow>";
    const std::size_t begin = at_;
    const char first = text_[at_];
    if (first == '"') {
      const std::size_t end = std::min(text_.find('"', begin + 1), text_.size());
      at_ = std::min(end + 1, text_.size());
      return element("mtext", escaped(text_.substr(begin + 1, end - begin - 1)));
    }
    if (is_digit(first)) {
      while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
      return element("mn", text_.substr(begin, at_ - begin));
    }
    if (is_letter(first)) {
      while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
      const std::string_view word = text_.substr(begin, at_ - begin);
      if (word == "sum") return "<mo>∑</mo>";
      if (word == "sqrt") return element("msqrt", group());
      if (word == "frac") {
        const std::string above = group();
        return element("mfrac", above + group());
      }
      return element("mi", word);
    }
    // A character of several bytes is one operator, or a Greek letter.
    ++at_;
    while (at_ < text_.size() && (static_cast<unsigned char>(text_[at_]) & 0xc0) == 0x80) ++at_;
    const std::string_view character = text_.substr(begin, at_ - begin);
    const auto lead = static_cast<unsigned char>(first);
    if (lead == 0xce || lead == 0xcf) return element("mi", character);
    if (first == '-') return "<mo>−</mo>";
    if (first == '~') return "<mo>∼</mo>";
    return element("mo", escaped(character));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string mathml(std::string_view formula, bool block) {
  Attributes attributes = {{"xmlns", "http://www.w3.org/1998/Math/MathML"}};
  if (block) attributes.emplace_back("display", "block");
  return element("math", attributes, element("mrow", FormulaReader(formula).row()));
}

}  // namespace headlab::tools
