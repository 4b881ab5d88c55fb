// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/toml_advice.h"
#include "engine/files/words.h"
#include "kernels/cpu/backend.h"
#include "kernels/parallel_for.h"
#include "tools/cli/stop_signal.h"
#include "validation/theory/controls/control_means.h"

namespace headlab::tools {
namespace {

// As the scenario reader has them.
constexpr std::uint64_t max_seed = (std::uint64_t{1} << 53) - 1;
constexpr std::uint64_t max_replicates = (std::uint64_t{1} << 40) - 1;
constexpr std::uint64_t max_threads = 4096;
constexpr double max_seconds = 1e9;

[[noreturn]] void reject_duration(const std::string& option, const std::string& text) {
  // "5 min", "1,5h"
  const std::size_t word = std::min(text.find_first_not_of("0123456789., "), text.size());
  const std::string number = number_meant(std::string_view(text).substr(0, word));
  const std::string unit = unit_of("TIME", text.substr(word));
  const bool known = !number.empty() && !unit.empty() && number + unit != text;
  throw InvalidInput(
      option + ": \"" + one_line(text) +
      "\" is not a time (allowed: more than 0, written 45s, 30m, 2h, 1h30m or 90 for seconds)" +
      (known ? " - write " + number + unit : ""));
}

double seconds_in(char unit) {
  return unit == 'h' ? 3600 : unit == 'm' ? 60 : unit == 's' ? 1 : 0;
}

/// Has the backend cpu use this SIMD target; throws InvalidInput where it is not there.
void choose_simd(const std::string& word) {
  const std::string name = word == "avx512" ? "AVX-512"
                           : word == "avx2" ? "AVX2"
                                            : cpu_simd_name(cpu_targets().back());
  try {
    use_cpu_simd(name);
  } catch (const std::invalid_argument& error) {
    throw InvalidInput("--simd " + word + ": " + error.what());
  }
}

}  // namespace

void Options::flag(const char* name, const std::string& help, bool& to) {
  all.push_back({name, "", help, [&to](const Texts&) { to = true; }, true});
}

void Options::value(const char* name, const char* type, const std::string& help,
                    std::function<void(const std::string&)> read, Texts words) {
  all.push_back(
      {name, type, help, [read = std::move(read)](const Texts& given) { read(given.front()); }});
  offer([words = std::move(words)] { return words; });
}

void Options::texts(const char* name, const char* type, const std::string& help, Texts& to) {
  all.push_back({name, type, help, [&to](const Texts& given) { to = given; }});
  all.back().many = true;
}

void Options::time(const char* name, const std::string& help, std::optional<Duration>& to) {
  value(name, "TIME", help, [name, &to](const std::string& text) {
    to = Duration{parse_duration(name, text), text};
  });
}

Options CommonArguments::all() {
  Options options;
  options.text("SCENARIO.toml", "", "The scenario file, or - for standard input", scenario);
  options.texts("--set", "KEY=VALUE", "Change a parameter of the scenario; may be repeated", sets);
  options.text("--out", "DIR", "Write results.nc and summary.json here", out);
  options.flag("--overwrite", "Replace earlier results in --out", overwrite);
  options.text("--json", "FILE|-", "Write the figures to a file, or - for standard output", json);
  options.text("--report", "FILE",
               "Write the results as one HTML file with pictures, which needs no network", report);
  options.text("--table", "FILE", "Write the table as FILE.csv, FILE.tex or FILE.md", table);
  options.text("--shard", "I/N|auto[/N]",
               "Compute one share of N alone, I from 1 to N, into --out; the command without it, "
               "and with --resume, reads all shards; auto: as Slurm or MPI number it",
               shard);
  options.flag("--resume", "Use what is kept in --out, of this command or its shards", resume);
  options.time("--checkpoint", "Keep what is done in --out every TIME; the default is 1m",
               checkpoint);
  options.word("--backend", "NAME", "auto (the default), reference, cpu or cuda", backend,
               {"auto", "reference", "cpu", "cuda"});
  options.word("--simd", "TARGET",
               "avx512, avx2 or portable, of the backend cpu; the default is the fastest. Results "
               "differ in their last bits",
               simd, {"avx2", "avx512", "portable"});
  options.number("--threads", "N", "Threads to use; the default is all", threads, 1, max_threads);
  options.number("--seed", "S", "Seed of the simulation, instead of the scenario's", seed, 0,
                 max_seed);
  options.number("--replicates", "R", "Training sets, instead of the scenario's", replicates, 1,
                 max_replicates);
  options.time("--max-time", "Stop after this time: 45s, 30m, 2h or seconds", max_time);
  options.flag("--quiet", "No progress on standard error", quiet);
  return options;
}

void CommonArguments::take(Options& options, std::initializer_list<Taken> some) {
  const Options known = all();
  for (const Taken& one : some) {
    Option option = *std::ranges::find(known.all, one.name, &Option::name);
    if (*one.help != '\0') option.help = one.help;
    if (*one.type != '\0') option.type = one.type;
    options.all.push_back(std::move(option));
  }
}

std::string unit_of(const std::string& type, std::string word) {
  struct Unit {
    const char *type, *unit;
    Texts words;
  };
  static const std::vector<Unit> known = {
      {"TIME", "s", {"s", "sec", "secs", "second", "seconds"}},
      {"TIME", "m", {"m", "min", "mins", "minute", "minutes"}},
      {"TIME", "h", {"h", "hour", "hours"}},
      {"LENGTH", "mm", {"mm", "millimeter", "millimeters", "millimetre", "millimetres"}},
      {"LENGTH", "cm", {"cm", "centimeter", "centimeters", "centimetre", "centimetres"}},
      {"LENGTH", "in", {"in", "inch", "inches"}},
      {"MCSE", "%", {"%", "percent"}},
      {"SHARE", "%", {"%", "percent"}}};
  // "Min." is an abbreviation.
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (word.ends_with('.')) word.pop_back();
  for (const Unit& one : known) {
    if (type.find(one.type) == std::string::npos) continue;
    if (std::ranges::find(one.words, word) != one.words.end()) return one.unit;
  }
  return "";
}

double parse_duration(const std::string& option, const std::string& text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  double total = 0;
  double last_unit = 1e300;
  do {
    double number = 0;
    const auto [stop, error] = std::from_chars(at, end, number, std::chars_format::fixed);
    if (error != std::errc() || !std::isfinite(number) || number < 0) reject_duration(option, text);
    const bool plain = at == text.data() && stop == end;
    const double unit = plain ? 1 : stop == end ? 0 : seconds_in(*stop);
    // Hours before minutes before seconds, each at most once.
    if (unit == 0 || unit >= last_unit) reject_duration(option, text);
    last_unit = unit;
    total += number * unit;
    at = plain ? end : stop + 1;
  } while (at != end);
  if (!(total > 0 && total <= max_seconds)) reject_duration(option, text);
  return total;
}

std::uint64_t parse_whole_number(const std::string& option, const std::string& text,
                                 std::uint64_t low, std::uint64_t high) {
  const double number = written_number(text).value_or(NAN);
  const bool whole = number == std::floor(number);
  // "1.000" is a thousand to some and one to others.
  const bool ambiguous = in_groups(text, ".");
  // The upper end is below 2^53, where doubles hold every whole number.
  if (!whole || ambiguous ||
      !(number >= static_cast<double>(low) && number <= static_cast<double>(high))) {
    std::string plain = number_meant(text);
    if (ambiguous) {
      plain = text;
      std::erase(plain, '.');
    }
    const double meant = plain.empty() ? NAN : std::stod(plain);
    const bool fits = meant == std::floor(meant) && meant >= static_cast<double>(low) &&
                      meant <= static_cast<double>(high) && plain != text;
    throw InvalidInput(option + ": \"" + one_line(text) +
                       "\" does not fit (allowed: a whole number from " + std::to_string(low) +
                       " to " + std::to_string(high) + ")" + (fits ? " - write " + plain : ""));
  }
  return static_cast<std::uint64_t>(number);
}

const std::string& known_word(const std::string& option, const std::string& word,
                              const Texts& words) {
  if (std::ranges::find(words, word) == words.end()) {
    // Two of three letters are those of "cpu".
    throw InvalidInput(option + ": \"" + one_line(word) + "\" is unknown" +
                       suggestion(word == "gpu" ? "cuda" : word, words));
  }
  return word;
}

std::vector<std::uint64_t> parse_numbers(const std::string& option, const std::string& text,
                                         std::uint64_t high) {
  std::vector<std::uint64_t> numbers;
  std::istringstream parts(text + ",");
  for (std::string part; std::getline(parts, part, ',');) {
    const std::uint64_t number = parse_whole_number(option, part, 1, high);
    if (std::ranges::find(numbers, number) != numbers.end()) {
      throw InvalidInput(option + ": names " + part + " twice");
    }
    numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::string numbers_text(const std::vector<std::uint64_t>& numbers) {
  std::string text;
  for (const std::uint64_t number : numbers) {
    text += (text.empty() ? "" : ",") + std::to_string(number);
  }
  return text;
}

int threads_of(const CommonArguments& arguments) {
  const int threads = arguments.threads.value_or(0);
  const int processors = thread_count(0);
  if (threads > processors && !arguments.quiet) {
    std::cerr << "headlab: --threads " << threads << ": this machine runs " << processors
              << " at a time; more take memory and gain nothing\n";
  }
  return threads;
}

namespace {

/// Options that stand for a --set, with their numbers.
std::vector<std::pair<std::string, std::string>> options_that_set(
    const CommonArguments& arguments) {
  std::vector<std::pair<std::string, std::string>> options;
  if (arguments.seed) options.emplace_back("seed", std::to_string(*arguments.seed));
  if (arguments.replicates) {
    options.emplace_back("replicates", std::to_string(*arguments.replicates));
  }
  return options;
}

}  // namespace

Texts all_sets(const CommonArguments& arguments) {
  Texts sets = arguments.sets;
  for (const auto& [name, number] : options_that_set(arguments)) {
    sets.push_back("run." + name + "=" + number);
  }
  return sets;
}

std::string as_typed(std::string message, const CommonArguments& arguments) {
  for (const auto& [name, number] : options_that_set(arguments)) {
    const std::string set = "--set run." + name + "=" + number;
    const std::string typed = "--" + name + " " + number;
    const std::string with_key = set + ": run." + name;
    // The key says the same as the option.
    if (message.starts_with(with_key)) message.replace(0, with_key.size(), typed);
    if (const auto at = message.find(set); at != std::string::npos) {
      message.replace(at, set.size(), typed);
    }
  }
  return message;
}

std::chrono::steady_clock::time_point deadline_of(const Duration& max_time) {
  const std::chrono::duration<double> seconds(max_time.seconds);
  return program_start() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(seconds);
}

void limit(Session& session, const CommonArguments& arguments) {
  session.stop = stop_on_signals();
  if (!arguments.max_time) return;
  session.deadline = deadline_of(*arguments.max_time);
  stop_at(session.deadline);
}

void make_backend_of(const Session& session, const CommonArguments& arguments) {
  if (arguments.simd) {
    // Another backend than the session's, which is to be made for the target.
    const std::string name = BackendChoice(arguments.backend)->name();
    if (name != "cpu") {
      throw InvalidInput("--simd: is of the backend cpu, and this one is " + name +
                         " - leave it out, or write --backend cpu");
    }
    choose_simd(*arguments.simd);
  }
  *session.backend;
}

Session session_of(const CommonArguments& arguments) {
  Session session{.backend = arguments.backend, .control_means = control_means};
  make_backend_of(session, arguments);
  session.threads = threads_of(arguments);
  limit(session, arguments);
  return session;
}

}  // namespace headlab::tools
