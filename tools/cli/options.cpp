// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <stdexcept>

#include "engine/files/error.h"
#include "engine/scenario/law_reader.h"
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
  throw InvalidInput(
      option + ": \"" + one_line(text) +
      "\" is not a time (allowed: more than 0, written 45s, 30m, 2h, 1h30m or 90 for seconds)");
}

double seconds_in(char unit) {
  return unit == 'h' ? 3600 : unit == 'm' ? 60 : unit == 's' ? 1 : 0;
}

/// Has the backend cpu use this SIMD target; throws InvalidInput.
void choose_simd(const std::string& word) {
  const std::vector<std::string> words = {"avx2", "avx512", "portable"};
  if (std::find(words.begin(), words.end(), word) == words.end()) {
    throw InvalidInput("--simd: \"" + one_line(word) + "\" is unknown" + suggestion(word, words));
  }
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
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool whole = error == std::errc() && stop == end && number == std::floor(number);
  // The upper end is below 2^53, where doubles hold every whole number.
  if (!whole || !(number >= static_cast<double>(low) && number <= static_cast<double>(high))) {
    throw InvalidInput(option + ": \"" + one_line(text) +
                       "\" does not fit (allowed: a whole number from " + std::to_string(low) +
                       " to " + std::to_string(high) + ")");
  }
  return static_cast<std::uint64_t>(number);
}

std::uint64_t parse_seed(const std::string& text) {
  return parse_whole_number("--seed", text, 0, max_seed);
}

std::uint64_t parse_replicates(const std::string& text) {
  return parse_whole_number("--replicates", text, 1, max_replicates);
}

int parse_threads(const std::optional<std::string>& text, bool quiet) {
  if (!text) return 0;
  const int threads = static_cast<int>(parse_whole_number("--threads", *text, 1, max_threads));
  if (quiet) return threads;
  const int processors = thread_count(0);
  if (threads > processors) {
    std::cerr << "headlab: --threads " << threads << ": this machine runs " << processors
              << " at a time; more take memory and gain nothing\n";
  }
  return threads;
}

std::vector<std::string> all_sets(const RunArguments& arguments) {
  std::vector<std::string> sets = arguments.sets;
  if (arguments.seed) sets.push_back("run.seed=" + std::to_string(parse_seed(*arguments.seed)));
  if (arguments.replicates) {
    sets.push_back("run.replicates=" + std::to_string(parse_replicates(*arguments.replicates)));
  }
  return sets;
}

bool is_full(const std::string& level) {
  if (level == "full") return true;
  if (level == "quick") return false;
  throw InvalidInput("--level: \"" + one_line(level) + "\" is unknown" +
                     suggestion(level, {"quick", "full"}));
}

std::chrono::steady_clock::time_point deadline_of(const std::string& max_time) {
  const std::chrono::duration<double> seconds(parse_duration("--max-time", max_time));
  return program_start() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(seconds);
}

void limit(Session& session, const RunArguments& arguments) {
  session.stop = stop_on_signals();
  if (arguments.max_time) session.deadline = deadline_of(*arguments.max_time);
}

void make_backend_of(const Session& session, const RunArguments& arguments) {
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

Session session_of(const RunArguments& arguments) {
  const std::vector<std::string> known = {"auto", "reference", "cpu", "cuda"};
  if (std::find(known.begin(), known.end(), arguments.backend) == known.end()) {
    // Two of three letters are those of "cpu".
    const std::string meant = arguments.backend == "gpu" ? "cuda" : arguments.backend;
    throw InvalidInput("--backend: \"" + one_line(arguments.backend) + "\" is unknown" +
                       suggestion(meant, known));
  }
  Session session{.backend = arguments.backend, .control_means = control_means};
  make_backend_of(session, arguments);
  session.threads = parse_threads(arguments.threads, arguments.quiet);
  limit(session, arguments);
  return session;
}

}  // namespace headlab::tools
