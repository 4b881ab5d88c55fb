// SPDX-License-Identifier: Apache-2.0
#include "tools/report/mathml.h"

#include <algorithm>

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

  /// Items up to the end, or to a closing brace or bracket.
  std::string row() {
    std::string items;
    bool after_name = false, after_operand = false;
    for (skip_spaces(); at_ < text_.size() && !closes(text_[at_]); skip_spaces()) {
      const bool fence = opens(text_[at_]);
      const std::string item = scripted();
      const bool operation = item.starts_with("<mo");
      const bool name = is_name(item);
      // "s log n", "2 bandwidth", words in quotes; but "log(n)".
      if (!operation && !fence && (after_name || (name && after_operand))) {
        items += "<mspace width=\"0.25em\"/>";
      }
      items += item;
      after_name = name;
      after_operand = !operation;
    }
    return items;
  }

 private:
  static bool opens(char c) { return c == '(' || c == '['; }
  static bool closes(char c) { return c == ')' || c == ']' || c == '}'; }
  /// True for an item that begins with a word of two letters or more, or in quotes.
  static bool is_name(std::string_view item) {
    for (const std::string_view script : {"<msubsup>", "<msub>", "<msup>"}) {
      if (item.starts_with(script)) item.remove_prefix(script.size());
    }
    if (item.starts_with("<mtext>")) return true;
    constexpr std::string_view identifier = "<mi>";
    return item.starts_with(identifier) && item.size() > identifier.size() + 1 &&
           is_letter(item[identifier.size()]) && is_letter(item[identifier.size() + 1]);
  }
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
    const bool sum = base == "<mo>∑</mo>" || base == "<mo>∏</mo>";
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
      if (word == "prod") return "<mo>∏</mo>";
      if (word == "sqrt") return element("msqrt", group());
      if (word == "frac") {
        const std::string above = group();
        return element("mfrac", above + group());
      }
      return element("mi", word);
    }
    // Brackets grow with a fraction between them; fonts have few heights for less.
    if (opens(first)) {
      ++at_;
      const std::string inside = row();
      const bool closed = at_ < text_.size() && text_[at_] != '}';
      const Attributes height = inside.find("<mfrac>") == std::string::npos
                                    ? Attributes{{"stretchy", "false"}}
                                    : Attributes{};
      const std::string end = closed ? element("mo", height, text_.substr(at_++, 1)) : "";
      return element("mrow", element("mo", height, text_.substr(begin, 1)) + inside + end);
    }
    if (first == '|') {
      ++at_;
      // "E[e | X]" has room around its bar, "|x|" has none.
      const bool between =
          begin > 0 && text_[begin - 1] == ' ' && at_ < text_.size() && text_[at_] == ' ';
      return between ? "<mo stretchy=\"false\">|</mo>"
                     : "<mo stretchy=\"false\" lspace=\"0\" rspace=\"0\">|</mo>";
    }
    // A character of several bytes is one operator, or a Greek letter.
    ++at_;
    while (at_ < text_.size() && (static_cast<unsigned char>(text_[at_]) & 0xc0) == 0x80) ++at_;
    const std::string_view character = text_.substr(begin, at_ - begin);
    const auto lead = static_cast<unsigned char>(first);
    if (lead == 0xce || lead == 0xcf) return element("mi", character);
    if (first == '-') return is_sign(begin) ? "<mo form=\"prefix\">−</mo>" : "<mo>−</mo>";
    if (first == '~') return "<mo>∼</mo>";
    return element("mo", escaped(character));
  }

  /// True where the minus at `begin` has nothing to subtract from.
  bool is_sign(std::size_t begin) const {
    std::string_view before = text_.substr(0, begin);
    while (before.ends_with(' ')) before.remove_suffix(1);
    constexpr std::string_view openers[] = {"(", "[", "{", ",", "=", "<", ">", "~", "≤", "≥"};
    return before.empty() || std::ranges::any_of(openers, [&](std::string_view opener) {
             return before.ends_with(opener);
           });
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

std::string displayed(std::string_view formulas) {
  std::string html;
  for (std::size_t begin = 0; begin < formulas.size();) {
    const std::size_t end = std::min(formulas.find("; ", begin), formulas.size());
    html += mathml(formulas.substr(begin, end - begin), true);
    begin = end + 2;
  }
  return html;
}

}  // namespace headlab::tools
