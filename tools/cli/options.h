// SPDX-License-Identifier: Apache-2.0
/// \file Options of commands: each is listed once, with what it means and where its value goes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/run/session.h"

namespace headlab::tools {

using Texts = std::vector<std::string>;

/// An option of a command, or an argument.
struct Option {
  std::string name;  ///< "--seed"; of an argument the word that stands for it, as "FILE"
  std::string type;  ///< what stands for its value; empty of a flag and of an argument
  std::string help;
  /// Takes what was given, one text but of those with `many`; throws InvalidInput.
  std::function<void(const Texts&)> read;
  bool flag = false;
  bool many = false;
  bool has_default = false;                               ///< a text, in place of nothing
  std::function<Texts()> words = [] { return Texts(); };  ///< that a shell may offer
};

/// A time as it was given: 45s, 30m, 2h, 1h30m or a plain number of seconds.
struct Duration {
  double seconds = 0;
  std::string text = {};
};

/// The options of a command in the order of its help. Values are read once all of them were given;
/// one that does not fit throws InvalidInput, which names the option.
class Options {
 public:
  void flag(const char* name, const std::string& help, bool& to);
  /// \param to  a std::string, or an optional one
  template <class Text>
  void text(const char* name, const char* type, const std::string& help, Text& to);
  void texts(const char* name, const char* type, const std::string& help, Texts& to);
  void time(const char* name, const std::string& help, std::optional<Duration>& to);
  /// Whatever `read` makes of the text.
  void value(const char* name, const char* type, const std::string& help,
             std::function<void(const std::string&)> read, Texts words = {});
  /// A whole number in [low, high].
  template <class Number>
  void number(const char* name, const char* type, const std::string& help, Number& to,
              std::uint64_t low, std::uint64_t high);
  /// One of some words, each with what it stands for.
  template <class T>
  void choice(const char* name, const char* type, const std::string& help, T& to,
              const std::vector<std::pair<std::string, std::type_identity_t<T>>>& choices);
  /// One of some words.
  template <class Text>
  void word(const char* name, const char* type, const std::string& help, Text& to,
            const Texts& words);
  /// What a shell may offer for the option listed last: asked for by `completion` alone.
  void offer(std::function<Texts()> words) { all.back().words = std::move(words); }

  std::vector<Option> all;
};

/// Options that several commands have; a command has those that it lists.
struct CommonArguments {
  std::string scenario;
  Texts sets;
  std::optional<std::string> out, json, report, table;
  std::string backend = "auto";
  std::optional<std::string> simd, shard;
  std::optional<int> threads;
  std::optional<std::uint64_t> seed, replicates;
  std::optional<Duration> max_time, checkpoint;
  bool quiet = false;
  bool resume = false;
  bool overwrite = false;

  /// Some file is made from the document of --json.
  bool need_document() const { return json || report || table; }

  /// An option by its name, with other help or another type where they are given.
  struct Taken {
    constexpr Taken(const char* of, const char* other_help = "", const char* other_type = "")
        : name(of), help(other_help), type(other_type) {}
    const char *name, *help, *type;
  };
  /// Lists some of these options.
  void take(Options& options, std::initializer_list<Taken> some);

 private:
  Options all();
};

/// What everything that simulates takes.
inline constexpr std::initializer_list<CommonArguments::Taken> simulation = {
    "--backend", "--simd", "--threads", "--seed", "--replicates", "--max-time", "--quiet"};
/// What a command of independent parts takes.
inline constexpr std::initializer_list<CommonArguments::Taken> units = {"--shard", "--resume",
                                                                        "--checkpoint"};

/// The unit that a word stands for in values of this type: "m" of "minutes" in a TIME; else empty.
std::string unit_of(const std::string& type, std::string word);

/// Seconds of "45s", "30m", "2h", "1h30m" or a plain number of seconds; throws InvalidInput, naming
/// `option`.
double parse_duration(const std::string& option, const std::string& text);

/// A whole number in [low, high], which may be written 2e4; throws InvalidInput, naming `option`.
std::uint64_t parse_whole_number(const std::string& option, const std::string& text,
                                 std::uint64_t low, std::uint64_t high);

/// `word`; throws InvalidInput, naming `option`, where it is none of `words`.
const std::string& known_word(const std::string& option, const std::string& word,
                              const Texts& words);

/// The whole numbers of "8,16,32", ascending; throws InvalidInput, naming `option`.
std::vector<std::uint64_t> parse_numbers(const std::string& option, const std::string& text,
                                         std::uint64_t high);

/// "8,16,32".
std::string numbers_text(const std::vector<std::uint64_t>& numbers);

/// The number of --threads, 0 (all of this machine) without one. Says on standard error, unless
/// --quiet, where it is more than the machine runs at a time.
int threads_of(const CommonArguments& arguments);

/// The --set arguments, those that --seed and --replicates stand for last.
Texts all_sets(const CommonArguments& arguments);

/// A message about a scenario, naming --seed and --replicates where it names their --set.
std::string as_typed(std::string message, const CommonArguments& arguments);

/// The deadline that --max-time sets, counted from the start of the program.
std::chrono::steady_clock::time_point deadline_of(const Duration& max_time);

/// Has signals and --max-time stop the session.
void limit(Session& session, const CommonArguments& arguments);

/// Makes the backend of a session, with the SIMD target of --simd, which holds for the process from
/// then on; throws InvalidInput where one of them is not there.
void make_backend_of(const Session& session, const CommonArguments& arguments);

/// Backend, threads, time limit and signals; throws InvalidInput for a backend that is not there.
Session session_of(const CommonArguments& arguments);

template <class Text>
void Options::text(const char* name, const char* type, const std::string& help, Text& to) {
  value(name, type, help, [&to](const std::string& text) { to = text; });
  all.back().has_default = std::is_same_v<Text, std::string>;
}

template <class Text>
void Options::word(const char* name, const char* type, const std::string& help, Text& to,
                   const Texts& words) {
  text(name, type, help, to);
  all.back().read = [=, &to](const Texts& given) { to = known_word(name, given.front(), words); };
  offer([words] { return words; });
}

template <class Number>
void Options::number(const char* name, const char* type, const std::string& help, Number& to,
                     std::uint64_t low, std::uint64_t high) {
  value(name, type, help, [=, &to](const std::string& text) {
    const std::uint64_t number = parse_whole_number(name, text, low, high);
    if constexpr (std::is_integral_v<Number>) {
      to = static_cast<Number>(number);
    } else {
      to = static_cast<typename Number::value_type>(number);
    }
  });
}

template <class T>
void Options::choice(const char* name, const char* type, const std::string& help, T& to,
                     const std::vector<std::pair<std::string, std::type_identity_t<T>>>& choices) {
  Texts words;
  for (const auto& [word, meaning] : choices) words.push_back(word);
  value(
      name, type, help,
      [=, &to](const std::string& text) {
        known_word(name, text, words);
        for (const auto& [word, meaning] : choices) {
          if (word == text) to = meaning;
        }
      },
      words);
}

}  // namespace headlab::tools
