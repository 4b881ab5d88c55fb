// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/characters.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <fcntl.h>
#include <iostream>
#include <langinfo.h>
#include <locale.h>
#include <streambuf>
#include <unistd.h>
#include <utility>

#include "engine/files/error.h"
#include "engine/files/words.h"
#include "kernels/host.h"
#include "tools/cli/call_name.h"

namespace headlab::tools {
namespace {

bool utf8_shown = true;

constexpr std::array<std::pair<std::string_view, std::string_view>, 16> ascii_forms = {{
    {"±", "+-"},
    {"–", "-"},
    {"²", "^2"},
    {"≥", ">="},
    {"≤", "<="},
    {"…", "..."},
    {"×", "x"},
    {"▕", "|"},
    {"▏", "|"},
    {"▎", ":"},
    {"▍", ":"},
    {"▌", ":"},
    {"▋", ":"},
    {"▊", ":"},
    {"▉", ":"},
    {"█", "#"},
}};

/// Whether a name of a codeset, or of a locale, says UTF-8.
bool names_utf8(std::string name) {
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.find("utf-8") != std::string::npos || name.find("utf8") != std::string::npos;
}

bool locale_is_utf8() {
  if (const locale_t locale = ::newlocale(LC_CTYPE_MASK, "", nullptr)) {
    const bool utf8 = names_utf8(::nl_langinfo_l(CODESET, locale));
    ::freelocale(locale);
    return utf8;
  }
  // A locale that is not installed here: the terminal may know it all the same.
  for (const char* const variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = environment_variable(variable);
    if (value != nullptr && *value != '\0') return names_utf8(value);
  }
  return false;
}

/// Changes what goes through it. Characters come whole: each is part of one output operation.
class CharacterBuffer : public std::streambuf {
 public:
  CharacterBuffer(std::streambuf* to, std::string (*changed)(std::string_view))
      : to_(to), changed_(changed) {}

 protected:
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    const std::string whole = changed_({text, static_cast<std::size_t>(count)});
    const auto size = static_cast<std::streamsize>(whole.size());
    return to_->sputn(whole.data(), size) == size ? count : 0;
  }
  int_type overflow(int_type c) override {
    return traits_type::eq_int_type(c, traits_type::eof())
               ? traits_type::not_eof(c)
               : to_->sputc(traits_type::to_char_type(c));
  }
  int sync() override { return to_->pubsync(); }

 private:
  std::streambuf* to_;
  std::string (*changed_)(std::string_view);
};

}  // namespace

void use_characters_of_locale() {
  utf8_shown = locale_is_utf8();
  // They live as long as the streams, which others may write to until the program ends.
  static CharacterBuffer to_terminal(std::cerr.rdbuf(), shown);
  static CharacterBuffer errors(&to_terminal, visible), output(std::cout.rdbuf(), visible);
  control_stream().rdbuf(&to_terminal);
  std::cerr.rdbuf(&errors);
  std::cout.rdbuf(&output);
}

std::ostream& control_stream() {
  static std::ostream stream(std::cerr.rdbuf());
  return stream;
}

std::string ascii_text(std::string_view text) {
  std::string ascii;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      ascii += text[i++];
      continue;
    }
    std::size_t end = i + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80) ++end;
    const std::string_view character = text.substr(i, end - i);
    const auto form = std::ranges::find(ascii_forms, character,
                                        &std::pair<std::string_view, std::string_view>::first);
    ascii += form == ascii_forms.end() ? "?" : form->second;
    i = end;
  }
  return ascii;
}

std::string shown(std::string_view text) {
  const std::string called = as_called(text);
  return utf8_shown ? called : ascii_text(called);
}

std::string markdown_text(const std::string& text) {
  std::string out;
  const std::string line = one_line(text);
  const auto in_word = [&](std::size_t i) {
    return i < line.size() && std::isalnum(static_cast<unsigned char>(line[i])) != 0;
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '<' || c == '&') {
      out += c == '<' ? "&lt;" : "&amp;";
      continue;
    }
    // Inside a word `_` is itself.
    const bool plain = c == '_' && i > 0 && in_word(i - 1) && in_word(i + 1);
    if (!plain && std::string_view("\\`*_[]|").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

bool shows_utf8() {
  return utf8_shown;
}

void hold_standard_streams() {
  // The lowest free number is taken: in this order each stream gets its own.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    // For the other direction: to read from standard input, or to write to the others, fails.
    [[maybe_unused]] const int held =
        ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void print(std::string_view text) {
  std::cout << text;
  finish_standard_output();
}

void finish_standard_output() {
  if (!std::cout.flush()) throw RunFailed("standard output: cannot be written");
}

}  // namespace headlab::tools
