// SPDX-License-Identifier: Apache-2.0
#include "kernels/formula.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace headlab {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
/// Parentheses, signs and powers inside one another.
constexpr int max_nesting = 64;

struct Named {
  const char* name;
  FormulaOperation operation;
};
constexpr std::array functions = {
    Named{"abs", FormulaOperation::abs},     Named{"sqrt", FormulaOperation::sqrt},
    Named{"exp", FormulaOperation::exp},     Named{"log", FormulaOperation::log},
    Named{"sin", FormulaOperation::sin},     Named{"cos", FormulaOperation::cos},
    Named{"tan", FormulaOperation::tan},     Named{"tanh", FormulaOperation::tanh},
    Named{"floor", FormulaOperation::floor}, Named{"ceil", FormulaOperation::ceil},
    Named{"round", FormulaOperation::round}, Named{"min", FormulaOperation::min},
    Named{"max", FormulaOperation::max}};
/// The longer ones first.
constexpr std::array comparisons = {
    Named{"<=", FormulaOperation::at_most}, Named{">=", FormulaOperation::at_least},
    Named{"==", FormulaOperation::equal},   Named{"!=", FormulaOperation::unequal},
    Named{"<", FormulaOperation::less},     Named{">", FormulaOperation::greater}};

bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Parser {
 public:
  Parser(const std::string& text,
         const std::function<std::optional<double>(const std::string&)>& constant)
      : text_(text), constant_(constant) {
    if (text.size() > Formula::max_text) {
      throw FormulaError("is longer than " + std::to_string(Formula::max_text) + " characters");
    }
  }

  Formula parse() {
    skip();
    if (at_ == text_.size()) throw FormulaError("is empty");
    comparison();
    if (at_ < text_.size()) {
      fail(text_[at_] == ')' ? "has a \")\" that nothing opens" : "cannot be read on", at_);
    }
    return std::move(formula_);
  }

 private:
  /// \param place  the character concerned, which is shown after what is before it
  [[noreturn]] void fail(const std::string& problem, std::size_t place) const {
    const std::string column = "column " + std::to_string(place + 1);
    if (place >= text_.size()) throw FormulaError(problem + " (at its end)");
    const std::size_t first = place < 24 ? 0 : place - 24;
    throw FormulaError(problem + " (" + column + ": " + (first > 0 ? "..." : "") +
                       text_.substr(first, place - first) + " --> " + text_.substr(place, 16) +
                       (place + 16 < text_.size() ? "..." : "") + ")");
  }

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(const char* word) {
    const std::string_view wanted = word;
    if (text_.compare(at_, wanted.size(), wanted) != 0) return false;
    at_ += wanted.size();
    skip();
    return true;
  }

  void comparison() {
    const Nested nested(*this);
    sum();
    for (int count = 0; at_ < text_.size(); ++count) {
      const std::size_t place = at_;
      const auto found =
          std::ranges::find_if(comparisons, [&](const Named& c) { return take(c.name); });
      if (found == comparisons.end()) {
        if (text_[at_] == '=') fail("has a single = - write == to compare", at_);
        return;
      }
      if (count > 0) fail("compares twice - write (a < b) * (b < c)", place);
      sum();
      add(found->operation);
    }
  }

  void sum() {
    product();
    while (true) {
      if (take("+")) {
        product();
        add(FormulaOperation::add);
      } else if (take("-")) {
        product();
        add(FormulaOperation::subtract);
      } else {
        return;
      }
    }
  }

  void product() {
    with_sign();
    while (true) {
      const std::size_t place = at_;
      if (take("**")) fail("has ** - write ^ for a power", place);
      if (take("*")) {
        with_sign();
        add(FormulaOperation::multiply);
      } else if (take("/")) {
        with_sign();
        add(FormulaOperation::divide);
      } else {
        return;
      }
    }
  }

  void with_sign() {
    const Nested nested(*this);
    if (take("-")) {
      with_sign();
      add(FormulaOperation::negate);
    } else if (take("+")) {
      with_sign();
    } else {
      atom();
      if (take("^")) {
        with_sign();
        add(FormulaOperation::power);
      }
    }
  }

  void atom() {
    const std::size_t place = at_;
    if (at_ == text_.size()) fail("ends where a number or a name should stand", place);
    if (take("(")) {
      comparison();
      if (!take(")")) fail("has a \"(\" that nothing closes", place);
    } else if (is_digit(text_[at_]) || text_[at_] == '.') {
      number();
    } else if (begins_name(text_[at_])) {
      named();
    } else {
      fail("has no number or name where one should stand", place);
    }
  }

  void number() {
    double value = 0;
    const char* first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range)
      fail("has a number beyond the range of float64", at_);
    if (error != std::errc() || (*end != '\0' && (begins_name(*end) || *end == '.'))) {
      fail("has a malformed number - write 2 * x for a product", at_);
    }
    at_ += static_cast<std::size_t>(end - first);
    skip();
    push({FormulaOperation::constant, value});
  }

  /// Letters, digits, _, as in keys "." and [0], and as in figures [0,1].
  std::string name() {
    const std::size_t first = at_;
    bool in_index = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '[') in_index = true;
      if (c == ']') in_index = false;
      const bool belongs = begins_name(c) || is_digit(c) || c == '.' || c == '[' || c == ']';
      if (!belongs && !(in_index && c == ',')) break;
    }
    std::string word = text_.substr(first, at_ - first);
    skip();
    return word;
  }

  void named() {
    const std::size_t place = at_;
    const std::string word = name();
    const auto function =
        std::ranges::find_if(functions, [&](const Named& f) { return word == f.name; });
    if (take("(")) {
      if (function == functions.end()) {
        std::string all;
        for (const Named& one : functions) all += (all.empty() ? "" : ", ") + std::string(one.name);
        fail("has no function \"" + word + "\" (allowed: " + all + ")", place);
      }
      comparison();
      const bool several = is_binary(function->operation);
      for (int count = 1; several && (count == 1 || text_.compare(at_, 1, ",") == 0); ++count) {
        if (!take(",")) fail("needs two numbers or more in " + word, at_);
        comparison();
        add(function->operation);
      }
      if (!take(")")) fail("has no \")\" after what " + word + " takes", at_);
      if (!several) add(function->operation);
      return;
    }
    if (function != functions.end()) fail("needs (...) after " + word, at_);
    if (word == "pi") return push({FormulaOperation::constant, 3.141592653589793});
    if (const auto value = constant_(word)) return push({FormulaOperation::constant, *value});
    auto& names = formula_.names;
    const auto known = std::ranges::find(names, word);
    push({FormulaOperation::variable, static_cast<double>(known - names.begin())});
    if (known == names.end()) names.push_back(word);
  }

  void push(const Formula::Step& step) {
    if (++depth_ > Formula::max_depth) {
      fail("keeps more than " + std::to_string(Formula::max_depth) + " numbers at a time", at_);
    }
    append(step);
  }
  void append(const Formula::Step& step) {
    if (formula_.steps.size() == Formula::max_steps) {
      fail("has more than " + std::to_string(Formula::max_steps) + " operations", at_);
    }
    formula_.steps.push_back(step);
  }

  /// Adds an operation, or does it where its operands are numbers.
  void add(FormulaOperation operation) {
    auto& steps = formula_.steps;
    const auto is_number = [&](std::size_t back) {
      return steps[steps.size() - back].operation == FormulaOperation::constant;
    };
    const std::size_t operands = is_binary(operation) ? 2 : 1;
    depth_ -= static_cast<int>(operands) - 1;
    // A list that ends with a constant is that constant alone.
    if (is_number(1) && (operands == 1 || is_number(2))) {
      std::vector<double> program;
      for (std::size_t back = operands; back > 0; --back) {
        program.insert(program.end(), {0.0, steps[steps.size() - back].operand});
      }
      program.insert(program.end(), {static_cast<double>(operation), 0.0});
      const double value = formulas::value<double>(program.data(), static_cast<int>(operands) + 1,
                                                   [](int) { return 0.0; });
      if (!std::isfinite(value)) fail("has a part that is not finite", at_);
      steps.resize(steps.size() - operands);
      steps.push_back({FormulaOperation::constant, value});
      return;
    }
    if (operation == FormulaOperation::power && is_number(1)) {
      const double power = steps.back().operand;
      if (power == std::floor(power) && std::abs(power) <= Formula::max_whole_power) {
        steps.back() = {FormulaOperation::whole_power, power};
        return;
      }
      if (power == 0.5) {
        steps.back() = {FormulaOperation::sqrt};
        return;
      }
    }
    append({operation});
  }

  /// Guards the stack of calls.
  struct Nested {
    explicit Nested(Parser& parser) : of(parser) {
      if (++of.nesting_ > max_nesting) {
        of.fail("nests deeper than " + std::to_string(max_nesting), of.at_);
      }
    }
    ~Nested() { --of.nesting_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    Parser& of;
  };

  const std::string& text_;
  const std::function<std::optional<double>(const std::string&)>& constant_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  int depth_ = 0;
  Formula formula_;
};

/// What is known of a part for all variables: an interval of its values, and how it may grow.
struct Known {
  double low = -infinity;
  double high = infinity;
  double growth = 0;

  bool is_bounded() const { return std::isfinite(low) && std::isfinite(high); }
  double size() const { return std::max(std::abs(low), std::abs(high)); }
};

Known bounded(double low, double high) {
  return {low, high, 0};
}
Known growing(double low, double high, double growth) {
  return {low, high, std::isfinite(low) && std::isfinite(high) ? 0 : growth};
}

/// The least and the largest of products of ends; 0 times infinity is 0.
Known times(const Known& a, const Known& b) {
  Known out = {infinity, -infinity, 0};
  for (const double x : {a.low, a.high}) {
    for (const double y : {b.low, b.high}) {
      const double product = x == 0 || y == 0 ? 0 : x * y;
      out.low = std::min(out.low, product);
      out.high = std::max(out.high, product);
    }
  }
  out.growth = out.is_bounded() ? 0 : a.growth + b.growth;
  return out;
}

Known after(FormulaOperation operation, double operand, const Known& a, const Known& b) {
  using Operation = FormulaOperation;
  const double faster = std::max(a.growth, b.growth);
  switch (operation) {
    case Operation::add:
      return growing(a.low + b.low, a.high + b.high, faster);
    case Operation::subtract:
      return growing(a.low - b.high, a.high - b.low, faster);
    case Operation::multiply:
      return times(a, b);
    case Operation::divide:
      if (b.low > 0 || b.high < 0) {
        Known quotient = times(a, {1 / b.high, 1 / b.low, 0});
        quotient.growth = quotient.is_bounded() ? 0 : a.growth;
        return quotient;
      }
      return {-infinity, infinity, infinity};
    case Operation::whole_power: {
      if (operand == 0) return bounded(1, 1);
      if (operand < 0 && a.low <= 0 && a.high >= 0) return {-infinity, infinity, infinity};
      const double of_low = std::pow(a.low, operand);
      const double of_high = std::pow(a.high, operand);
      double low = std::min(of_low, of_high);
      const bool is_even = std::fmod(operand, 2) == 0;
      if (is_even && a.low <= 0 && a.high >= 0) low = 0;
      return growing(low, std::max(of_low, of_high), operand > 0 ? operand * a.growth : 0);
    }
    case Operation::negate:
      return growing(-a.high, -a.low, a.growth);
    case Operation::less:
    case Operation::at_most:
    case Operation::greater:
    case Operation::at_least:
    case Operation::equal:
    case Operation::unequal:
      return bounded(0, 1);
    case Operation::min:
      return growing(std::min(a.low, b.low), std::min(a.high, b.high), faster);
    case Operation::max:
      return growing(std::max(a.low, b.low), std::max(a.high, b.high), faster);
    case Operation::abs: {
      const double low = a.low > 0 ? a.low : a.high < 0 ? -a.high : 0;
      return growing(low, a.size(), a.growth);
    }
    case Operation::sqrt:
      return growing(std::sqrt(std::max(a.low, 0.0)), std::sqrt(std::max(a.high, 0.0)),
                     a.growth / 2);
    case Operation::exp:
      return growing(std::exp(a.low), std::exp(a.high), infinity);
    case Operation::sin:
    case Operation::cos:
    case Operation::tanh:
      return bounded(-1, 1);
    case Operation::floor:
    case Operation::ceil:
    case Operation::round:
      return growing(a.low - 1, a.high + 1, a.growth);
    default:
      return {-infinity, infinity, infinity};  // log, tan and powers may have poles
  }
}

Known known(const Formula& formula) {
  std::vector<Known> stack;
  for (const Formula::Step& step : formula.steps) {
    if (step.operation == FormulaOperation::constant) {
      stack.push_back(bounded(step.operand, step.operand));
    } else if (step.operation == FormulaOperation::variable) {
      stack.push_back({-infinity, infinity, 1});
    } else {
      const Known b = stack.back();
      if (is_binary(step.operation)) stack.pop_back();
      stack.back() = after(step.operation, step.operand, stack.back(), b);
    }
  }
  return stack.back();
}

}  // namespace

std::vector<double> Formula::program() const {
  std::vector<double> numbers;
  for (const Step& step : steps) {
    numbers.insert(numbers.end(), {static_cast<double>(step.operation), step.operand});
  }
  return numbers;
}

double Formula::growth() const {
  return known(*this).growth;
}

double Formula::bound() const {
  const Known all = known(*this);
  return all.is_bounded() ? all.size() : infinity;
}

bool is_free_name(const std::string& name) {
  return !name.empty() && begins_name(name[0]) && name != "pi" &&
         std::ranges::none_of(functions, [&](const Named& one) { return name == one.name; });
}

Formula parse_formula(const std::string& text,
                      const std::function<std::optional<double>(const std::string&)>& constant) {
  return Parser(text, constant).parse();
}

}  // namespace headlab
