// SPDX-License-Identifier: Apache-2.0
#include "tools/report/formula_text.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <utility>

#include "tools/report/html.h"

namespace headlab::tools {
namespace {

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}
bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_alnum(char c) {
  return is_letter(c) || is_digit(c);
}

constexpr std::string_view minus = "−";

/// Reads a text from left to right.
class FormulaReader {
 public:
  explicit FormulaReader(std::string_view text) : text_(text) {}

  std::string html() {
    while (at_ < text_.size()) {
      if (!symbol() && !power() && !sign()) plain(1);
    }
    return html_ + escaped(plain_);
  }

 private:
  char here(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  char before() const { return at_ > 0 ? text_[at_ - 1] : '\0'; }
  bool starts_word() const { return !is_alnum(before()) && before() != '_' && before() != '.'; }

  void plain(std::size_t count) {
    plain_ += text_.substr(at_, count);
    at_ += count;
  }
  void add(const std::string& html, std::size_t count) {
    html_ += escaped(plain_) + html;
    plain_.clear();
    at_ += count;
  }

  /// Characters of a run of one kind.
  template <class Kind>
  std::size_t run(std::size_t from, const Kind& kind) const {
    std::size_t end = from;
    while (end < text_.size() && kind(text_[end])) ++end;
    return end - from;
  }

  /// Characters of a bracket with its content; 0 where none begins here, or it does not end.
  std::size_t bracket(std::size_t from) const {
    if (from >= text_.size() || text_[from] != '(') return 0;
    int depth = 0;
    for (std::size_t end = from; end < text_.size(); ++end) {
      depth += text_[end] == '(' ? 1 : text_[end] == ')' ? -1 : 0;
      if (depth == 0) return end + 1 - from;
    }
    return 0;
  }

  /// A letter with a subscript, a Greek one with that or a power, √ of a bracket.
  bool symbol() {
    static const std::map<std::string_view, const char*> greek = {
        {"beta", "β"}, {"mu", "μ"}, {"omega", "ω"}, {"phi", "φ"}, {"rho", "ρ"}, {"sigma", "σ"}};
    if (!is_letter(here()) || !starts_word()) return false;
    const std::size_t letters = run(at_, is_letter);
    const std::string_view word = text_.substr(at_, letters);
    if (text_.substr(at_).starts_with("s2/n") ||
        (word == "s" && text_.substr(0, at_).ends_with("/ ") && here(1) == '2' &&
         !is_alnum(here(2)))) {
      add("s" + element("sup", "2"), 2);
      return true;
    }
    if (word == "sqrt" && bracket(at_ + letters) > 0) {
      add("√", letters);
      return true;
    }
    const auto letter = greek.find(word);
    if (letters > 1 && letter == greek.end()) return false;
    const std::string base =
        element("i", letter == greek.end() ? std::string(word) : std::string(letter->second));
    const char after_word = here(letters);
    const bool stands_alone = word == "sigma" || word == "omega" || word == "phi";  // not a key
    if (letter != greek.end() && after_word != '_' &&
        (after_word == '^' || (stands_alone && !is_alnum(after_word)))) {
      add(base, letters);
      return true;
    }
    if (here(letters) != '_') return false;
    const std::size_t from = at_ + letters + 1;
    if (const std::size_t size = bracket(from); size > 0) {
      add(base + element("sub", formula_html(text_.substr(from + 1, size - 2))),
          letters + 1 + size);
      return true;
    }
    const std::size_t size = run(from, is_alnum);
    const char after = from + size < text_.size() ? text_[from + size] : '\0';
    if (size < 1 || size > 2 || after == '_') return false;
    const std::string index(text_.substr(from, size));
    add(base + element("sub", is_letter(index[0]) ? element("i", index) : index),
        letters + 1 + size);
    return true;
  }

  bool power() {
    if (here() != '^' || (!is_alnum(before()) && before() != ')' && before() != '|')) return false;
    const std::size_t from = at_ + 1;
    if (const std::size_t size = bracket(from); size > 0) {
      add(element("sup", formula_html(text_.substr(from + 1, size - 2))), 1 + size);
      return true;
    }
    const std::string_view rest = text_.substr(from);
    const std::size_t sign = rest.starts_with(minus) ? minus.size() : rest.starts_with('-') ? 1 : 0;
    std::size_t size = run(from + sign, is_alnum);
    if (size == 0) return false;
    const std::size_t point = from + sign + size;
    if (point + 1 < text_.size() && text_[point] == '.' && is_digit(text_[point + 1])) {
      size += 1 + run(point + 1, is_digit);
    }
    add(element("sup", (sign > 0 ? std::string(minus) : "") + std::string(rest.substr(sign, size))),
        1 + sign + size);
    return true;
  }

  bool sign() {
    for (const auto& [written, set] : {std::pair("<=", "≤"), std::pair(">=", "≥")}) {
      if (!text_.substr(at_).starts_with(written)) continue;
      plain_ += set;
      at_ += 2;
      return true;
    }
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string html_, plain_;
};

}  // namespace

std::string with_powers(std::string_view text) {
  const auto digit_at = [&](std::size_t at) { return at < text.size() && is_digit(text[at]); };
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    out += text[at];
    if (text[at] != 'e' || at == 0 || !(digit_at(at - 1) || text[at - 1] == ')')) continue;
    // The number or the bracket before, which no other word goes into.
    const std::size_t begin = text.find_last_not_of("0123456789.", at - 1) + 1;
    const auto before = begin > 0 ? static_cast<unsigned char>(text[begin - 1]) : ' ';
    if (std::isalnum(before) != 0 || before == '_') continue;
    std::size_t digits = at + 1;
    bool negative = false;
    for (const std::string_view sign : {"-", "−", "+"}) {
      if (!text.substr(digits).starts_with(sign)) continue;
      negative = sign != "+";
      digits += sign.size();
      break;
    }
    while (text.substr(digits, 1) == "0" && digit_at(digits + 1)) ++digits;
    const std::size_t end = std::min(text.find_first_not_of("0123456789", digits), text.size());
    const char after = end < text.size() ? text[end] : ' ';
    if (end == digits || std::isalnum(static_cast<unsigned char>(after)) != 0 || after == '_') {
      continue;
    }
    out.pop_back();
    // "1e-09" is 10^−9.
    const bool is_one = text.substr(begin, at - begin) == "1";
    if (is_one) out.pop_back();
    out += std::string(is_one ? "" : "·") + "10^" + (negative ? "−" : "") +
           std::string(text.substr(digits, end - digits));
    at = end - 1;
  }
  return out;
}

std::string formula_html(std::string_view text) {
  const std::string with = with_powers(text);
  return FormulaReader(with).html();
}

}  // namespace headlab::tools
