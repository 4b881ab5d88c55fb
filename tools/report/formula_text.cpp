// SPDX-License-Identifier: Apache-2.0
#include "tools/report/formula_text.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>

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

bool is_of_name(char c) {
  return is_alnum(c) || c == '_' || c == '.';
}

constexpr std::string_view minus = "−";

/// Whether a name ends before `at`, be it with a sentence.
bool ends_name(std::string_view text, std::size_t at) {
  if (at < text.size() && text[at] == '.') ++at;
  return at >= text.size() || !is_of_name(text[at]);
}

/// Whether the hyphen at `at` is a minus sign: between operands of a formula, behind a bracket that
/// opens, before a number or a function.
bool is_minus(std::string_view text, std::size_t at) {
  const auto before = [&](std::size_t count) { return at >= count ? text[at - count] : ' '; };
  const auto after = [&](std::size_t count) {
    return at + count < text.size() ? text[at + count] : ' ';
  };
  if (before(1) == '(' || before(1) == '[' || before(1) == '^') return is_of_name(after(1));
  if (before(1) == ',') return is_digit(after(1));  // "[1,-2]"
  if (before(1) == ' ' && after(1) == ' ') {
    const bool ends_operand =
        is_digit(before(2)) || before(2) == ')' || (is_letter(before(2)) && !is_of_name(before(3)));
    if (ends_operand && before(3) == '(' && is_letter(after(2))) return true;  // "(1 - omega)"
    const bool is_article = after(2) == 'a' && after(3) == ' ' && is_letter(after(4));
    return ends_operand && (is_digit(after(2)) || after(2) == '(' ||
                            (is_letter(after(2)) && !is_of_name(after(3)) && !is_article));
  }
  if (before(1) == ' ') {
    return is_digit(after(1)) || (after(1) == '.' && is_digit(after(2))) ||
           (is_letter(after(1)) && after(2) == '(');
  }
  // "(N-1)"
  std::size_t end = at + 1;
  while (end < text.size() && is_digit(text[end])) ++end;
  return is_letter(before(1)) && before(2) == '(' && end > at + 1 && end < text.size() &&
         text[end] == ')';
}

/// Reads a text from left to right.
class FormulaReader {
 public:
  explicit FormulaReader(std::string_view text) : text_(text) {}

  std::string html() {
    while (at_ < text_.size()) {
      if (!symbol() && !power()) plain(1);
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

  /// True of a Greek letter on its own, and false of a key with its value: "beta = 2", "rho 1".
  bool is_alone(std::string_view word) const {
    const bool is_key_too = word == "beta" || word == "rho";
    const bool has_value = here(word.size()) == ' ' &&
                           (here(word.size() + 1) == '=' || is_digit(here(word.size() + 1)));
    return word != "mu" && !is_alnum(here(word.size())) && !(is_key_too && has_value);
  }

  /// A letter with a subscript, a Greek one with that or a power.
  bool symbol() {
    static const std::map<std::string_view, const char*> greek = {
        {"beta", "β"}, {"eps", "ε"}, {"mu", "μ"},   {"omega", "ω"},
        {"phi", "φ"},  {"rho", "ρ"}, {"sigma", "σ"}};
    if (!is_letter(here()) || !starts_word()) return false;
    const std::size_t letters = run(at_, is_letter);
    const std::string_view word = text_.substr(at_, letters);
    const auto letter = greek.find(word);
    if (letters > 1 && letter == greek.end()) return false;
    const std::string base =
        element("i", letter == greek.end() ? std::string(word) : std::string(letter->second));
    const char after_word = here(letters);
    if (letter != greek.end() && after_word != '_' && (after_word == '^' || is_alone(word))) {
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
    const std::string index(text_.substr(from, size));
    if (size < 1 || (size > 2 && index != "eff") || after == '_') return false;
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

std::string with_signs(std::string_view written) {
  const std::string text = with_powers(written);
  const auto at_word = [&](std::size_t at, std::string_view word) {
    return text.compare(at, word.size(), word) == 0 && (at == 0 || !is_of_name(text[at - 1]));
  };
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (text.compare(at, 2, "<=") == 0 || text.compare(at, 2, ">=") == 0) {
      out += text[at] == '<' ? "≤" : "≥";
      at += 2;
    } else if (at_word(at, "sqrt(")) {
      out += "√";
      at += 4;
    } else if (at_word(at, "int e^")) {
      out += "∫";
      at += 3;
    } else if (at_word(at, "s2") && ends_name(text, at + 2)) {
      out += "s^2";
      at += 2;
    } else if (text[at] == '-' && is_minus(text, at)) {
      out += minus;
      ++at;
    } else {
      out += text[at++];
    }
  }
  return out;
}

std::string formula_html(std::string_view text) {
  const std::string with = with_signs(text);
  return FormulaReader(with).html();
}

}  // namespace headlab::tools
