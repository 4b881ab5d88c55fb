// SPDX-License-Identifier: Apache-2.0
/// \file What a user may write on the command line, checked and turned into numbers.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/session.h"

namespace headlab::tools {

/// The arguments of `headlab run`, as written.
struct RunArguments {
  std::string scenario;
  std::vector<std::string> sets;
  std::optional<std::string> out;
  std::optional<std::string> json;
  std::optional<std::string> report;
  std::string backend = "auto";
  std::optional<std::string> simd;
  std::optional<std::string> shard;
  std::optional<std::string> threads;
  std::optional<std::string> seed;
  std::optional<std::string> replicates;
  std::optional<std::string> max_time;
  std::optional<std::string> checkpoint;
  std::string nodes = "all";
  std::optional<std::string> until;
  std::optional<std::string> against;
  std::optional<std::string> difference;
  bool quiet = false;
  bool compare = false;
  bool resume = false;
  bool overwrite = false;
  bool dry_run = false;
};

/// The arguments of `headlab theory`, as written.
struct TheoryArguments {
  std::string scenario;
  std::vector<std::string> sets;
  std::string source = "auto";
  std::optional<std::string> json;
  std::optional<std::string> threads;
};

/// The arguments of `headlab diff`, as written.
struct DiffArguments {
  std::string a;
  std::string b;
  std::optional<std::string> json;
};

/// The arguments of `headlab hdi`, as written.
struct HdiArguments {
  std::string file;
  std::optional<std::string> kv_heads;
  std::optional<std::string> json;
  std::optional<std::string> report;
  std::optional<std::string> seed;
  std::optional<std::string> threads;
  std::string top = "5";
};

/// The arguments of `headlab import-heads`, as written.
struct ImportHeadsArguments {
  std::string checkpoint;
  std::string architecture = "auto";
  std::string layer = "all";
  std::optional<std::string> config;
  std::optional<std::string> heads;
  std::optional<std::string> kv_heads;
  std::optional<std::string> out;
  std::optional<std::string> threads;
  bool overwrite = false;
};

/// The arguments of `headlab compress`, as written.
struct CompressArguments {
  std::string file;
  std::optional<std::string> rank;
  std::string by = "kq_svd";
  std::string layer = "all";
  std::optional<std::string> data;
  std::optional<std::string> n;
  std::optional<std::string> replicates;
  std::optional<std::string> seed;
  std::optional<std::string> out;
  std::optional<std::string> json;
  std::optional<std::string> threads;
  bool centre = false;
  bool overwrite = false;
};

/// The arguments of `headlab report`, as written.
struct ReportArguments {
  std::vector<std::string> folders;
  std::string out = "report.html";
};

/// Seconds of "45s", "30m", "2h", "1h30m" or a plain number of seconds; throws InvalidInput, naming
/// `option`.
double parse_duration(const std::string& option, const std::string& text);

/// A whole number in [low, high], which may be written 2e4; throws InvalidInput, naming `option`.
std::uint64_t parse_whole_number(const std::string& option, const std::string& text,
                                 std::uint64_t low, std::uint64_t high);

/// The seed of --seed; throws InvalidInput.
std::uint64_t parse_seed(const std::string& text);

/// The number of --replicates; throws InvalidInput.
std::uint64_t parse_replicates(const std::string& text);

/// The number given to --threads, 0 (all of this machine) without one; throws InvalidInput. Says on
/// standard error, unless `quiet`, where it is more than the machine runs at a time.
int parse_threads(const std::optional<std::string>& text, bool quiet = false);

/// True for --level full, false for quick; throws InvalidInput for another.
bool is_full(const std::string& level);

/// The --set arguments, those that --seed and --replicates stand for last; throws InvalidInput.
std::vector<std::string> all_sets(const RunArguments& arguments);

/// The deadline that --max-time sets, counted from the start of the program; throws InvalidInput.
std::chrono::steady_clock::time_point deadline_of(const std::string& max_time);

/// Has signals and --max-time stop the session; throws InvalidInput.
void limit(Session& session, const RunArguments& arguments);

/// Makes the backend of a session, with the SIMD target of --simd, which holds for the process from
/// then on; throws InvalidInput where one of them is not there.
void make_backend_of(const Session& session, const RunArguments& arguments);

/// Backend, threads, time limit and signals; throws InvalidInput, also for a backend that is not
/// there.
Session session_of(const RunArguments& arguments);

}  // namespace headlab::tools
