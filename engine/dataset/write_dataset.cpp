// SPDX-License-Identifier: Apache-2.0
#include "engine/dataset/write_dataset.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "engine/dataset/draw_shard.h"
#include "engine/dataset/manifest.h"
#include "engine/dataset/replacement.h"
#include "engine/dataset/shard_output.h"
#include "engine/files/atomic_file.h"
#include "engine/files/error.h"
#include "engine/files/json_writer.h"
#include "engine/files/sha256.h"
#include "engine/run/memory.h"
#include "engine/scenario/condition.h"
#include "kernels/counted.h"
#include "kernels/parallel_for.h"
#include "kernels/plan.h"
#include "kernels/statistics/stopping.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Tells a caller how far the work is, from whichever thread does a part of it, one at a time.
class Teller {
 public:
  Teller(const Session& session, const char* what, double work, std::uint64_t bytes)
      : tell_(session.report), what_(what), work_(work), bytes_(bytes) {}

  void add(double work) {
    if (!tell_) return;
    const std::lock_guard lock(mutex_);
    done_ += work;
    const auto now = Clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    Progress progress{
        .total = bytes_, .what = what_, .share = work_ > 0 ? std::min(1.0, done_ / work_) : 0};
    if (progress.share > 0) {
      progress.seconds_left = watch_.seconds() * (1 - progress.share) / progress.share;
    }
    tell_(progress);
  }

 private:
  const std::function<void(const Progress&)>& tell_;
  const char* what_;
  double work_;
  std::uint64_t bytes_;
  Stopwatch watch_;
  std::mutex mutex_;
  double done_ = 0;
  Clock::time_point next_ = Clock::now();
};

bool is_intact(const std::string& folder, const std::vector<FileRecord>& record,
               const std::vector<std::string>& files) {
  if (record.size() != files.size()) return false;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string path = folder + "/" + files[i];
    std::error_code error;
    if (record[i].name != files[i] || !fs::is_regular_file(path, error) ||
        fs::file_size(path, error) != record[i].bytes || sha256_of_file(path) != record[i].sha256) {
      return false;
    }
  }
  return true;
}

/// Which of the recorded shards `ids` are what the manifest says [ids]; several are read at a time.
/// Means nothing where the session is to stop.
std::vector<char> check_shards(const Dataset& dataset, const std::string& folder,
                               const std::vector<ShardId>& ids, const ShardRecords& records,
                               const Session& session) {
  std::vector<char> intact(ids.size(), 1);
  std::vector<double> bytes;
  double all = 0;
  for (const ShardId& id : ids) {
    bytes.push_back(static_cast<double>(dataset.shard_bytes(id.first, id.second)));
    all += bytes.back();
  }
  Teller teller(session, "to check", all, static_cast<std::uint64_t>(all));
  parallel_for(ids.size(), thread_count(session.threads), [&](std::size_t i) {
    if (session.should_stop()) return;
    const auto files = dataset.shard_files(ids[i].first, ids[i].second);
    intact[i] = is_intact(folder, records.at(ids[i]), files) ? 1 : 0;
    teller.add(bytes[i]);
  });
  return intact;
}

/// Throws InvalidInput unless drawing fits in memory.
void check_memory(const Dataset& dataset, int threads) {
  double most = 0;
  for (const DatasetCondition& one : dataset.conditions) {
    most = std::max(most, static_cast<double>(plan_bytes(*one.condition)) +
                              threads * draw_bytes(*one.condition, dataset.request));
  }
  require_memory(static_cast<std::uint64_t>(std::min(most, 1e18)),
                 "for " + counted(static_cast<std::uint64_t>(threads), "thread"), "data.n",
                 threads == 1 ? "" : "or use --threads 1");
}

/// Throws InvalidInput unless the shards fit on the disk of `folder`, where they take the place of
/// what is there of them, and each file is small enough.
void check_disk(const Dataset& dataset, const std::string& folder,
                const std::vector<ShardId>& ids) {
  double bytes = 0;
  std::uint64_t largest = 0;  // file
  for (const auto& [which, shard] : ids) {
    const std::uint64_t shard_bytes = dataset.shard_bytes(which, shard) + shard_overhead_bytes;
    bytes += static_cast<double>(shard_bytes);
    for (const std::string& file : dataset.shard_files(which, shard)) {
      std::error_code none;
      const std::uintmax_t replaced = fs::file_size(folder + "/" + file, none);
      if (!none) bytes -= static_cast<double>(replaced);
    }
    if (dataset.request.format == DatasetFormat::netcdf) {
      largest = std::max(largest, shard_bytes);
      continue;
    }
    for (const DatasetVariable& variable :
         dataset_variables(*dataset.conditions[which].condition, dataset.request,
                           dataset.range(which, shard).count)) {
      largest = std::max(largest, variable.bytes());
    }
  }
  struct statvfs disk = {};
  if (::statvfs(folder.c_str(), &disk) == 0) {
    const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
    if (bytes > static_cast<double>(free)) {
      throw InvalidInput(
          "--out: " + folder + ": needs " + format_bytes(static_cast<std::uint64_t>(bytes)) + ", " +
          format_bytes(free) + " free on the disk - lower --replicates, or choose another place");
    }
  }
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      largest > limit.rlim_cur) {
    throw InvalidInput("--shards: a file has " + format_bytes(largest) + ", over the limit of " +
                       format_bytes(limit.rlim_cur) + " for a file (ulimit -f) - use more shards");
  }
}

DatasetAttributes attributes_of(const Dataset& dataset, std::size_t which, std::uint64_t shard,
                                const Provenance& program) {
  const DatasetCondition& of = dataset.conditions[which];
  std::string sets;
  for (const std::string& set : dataset.sets) sets += (sets.empty() ? "" : "\n") + set;
  const auto number = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  return {.texts = {{"Conventions", "CF-1.8"},
                    {"title", of.condition->name},
                    {"source", "headlab " + program.version},
                    {"scenario_text", dataset.scenario_text},
                    {"set_arguments", sets},
                    {"parameters", to_json(of.condition->parameters.tree())}},
          .numbers = {{"format_version", dataset_format_version},
                      {"seed", number(of.condition->seed)},
                      {"condition", number(which)},
                      {"conditions", number(dataset.conditions.size())},
                      {"shard", number(shard)},
                      {"shards", number(of.shards)},
                      {"replicates_of_all_shards", number(of.condition->replicates)}}};
}

/// Sums the files of a shard that has been written, sees them to the disk and puts them in place.
std::pair<ShardId, std::vector<FileRecord>> finish_shard(const Dataset& dataset, ShardId id,
                                                         TemporaryPath& path) {
  const std::string at = dataset.shard_path(id.first, id.second);
  std::vector<FileRecord> records;
  for (const std::string& name : dataset.shard_files(id.first, id.second)) {
    const std::string file = path.name() + name.substr(at.size());
    const std::string shown = path.target() + name.substr(at.size());
    // The disk has been told to begin, and works while the sum is computed.
    records.push_back({name, fs::file_size(file), sha256_of_file(file)});
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) throw cannot_be_written(shown, errno);
    const std::shared_ptr<void> closing(nullptr, [&](void*) { ::close(descriptor); });
    flush_to_disk(descriptor, shown);
  }
  flush_folder_of(path.name() + records.back().name.substr(at.size()));
  path.rename();
  return {id, std::move(records)};
}

/// Writes shards one after the other and records them.
class Writing {
 public:
  Writing(const Dataset& dataset, const std::string& folder, const Session& session,
          const Provenance& program, std::vector<ShardId> lost)
      : dataset_(dataset),
        folder_(folder),
        session_(session),
        program_(program),
        threads_(thread_count(session.threads)),
        lost_(std::move(lost)) {}

  /// Less than all where it is stopped.
  void write(const std::vector<ShardId>& ids, Teller& teller) {
    try {
      // A manifest vouches for nothing that is being replaced.
      record();
      std::optional<std::pair<std::size_t, Plan>> plan;  // of the condition under way
      for (const ShardId& id : ids) {
        if (session_.should_stop()) break;
        const auto& [which, shard] = id;
        const Condition& condition = *dataset_.conditions[which].condition;
        if (!plan || plan->first != which) {
          plan.emplace(which, make_plan(condition, dataset_.conditions[which].found));
        }
        const std::string at = folder_ + "/" + dataset_.shard_path(which, shard);
        auto path = std::make_shared<TemporaryPath>(at);
        const ShardRange range = dataset_.range(which, shard);
        const auto output = open_shard(dataset_.request.format, path->name(), at,
                                       dataset_variables(condition, dataset_.request, range.count),
                                       attributes_of(dataset_, which, shard, program_));
        if (!draw_shard(condition, plan->second, dataset_.request, range, *output, session_,
                        [&](double work) { teller.add(work); })) {
          break;
        }
        output->close();
        finishing_.push_back(std::async(
            std::launch::async, [this, id, path] { return finish_shard(dataset_, id, *path); }));
        collect(static_cast<std::size_t>(threads_));
      }
      collect(0);
    } catch (...) {
      salvage();
      throw;
    }
    record();
  }

  /// How many shards were written that the manifest names.
  std::uint64_t recorded_shards() const { return recorded_shards_; }

 private:
  /// Waits for shards until at most `left` are being finished.
  void collect(std::size_t left) {
    while (finishing_.size() > left) {
      std::future<std::pair<ShardId, std::vector<FileRecord>>> first =
          std::move(finishing_.front());
      finishing_.pop_front();
      fresh_.insert(first.get());
      // Each time the whole manifest is written: not for every one of many small shards.
      if (Clock::now() - recorded_ > std::chrono::seconds(1)) record();
    }
  }

  void record() {
    if (!fresh_.empty() || !lost_.empty()) {
      update_manifest(folder_, dataset_, fresh_, lost_, program_, session_.stop_hook());
    }
    recorded_shards_ += fresh_.size();
    fresh_.clear();
    lost_.clear();
    recorded_ = Clock::now();
  }

  /// What can be kept when something failed. The first failure is the one to tell.
  void salvage() {
    while (!finishing_.empty()) {
      try {
        collect(finishing_.size() - 1);
      } catch (...) {
      }
    }
    try {
      record();
    } catch (...) {
    }
  }

  const Dataset& dataset_;
  const std::string& folder_;
  const Session& session_;
  const Provenance& program_;
  int threads_;
  std::vector<ShardId> lost_;  ///< to be taken out of the manifest
  std::deque<std::future<std::pair<ShardId, std::vector<FileRecord>>>> finishing_;
  ShardRecords fresh_;  ///< finished and not yet in the manifest
  std::uint64_t recorded_shards_ = 0;
  Clock::time_point recorded_ = Clock::now();
};

/// Whether all shards asked for are there. Throws WorkStopped where it is stopped while another
/// process has the manifest.
bool write_shards(const Dataset& dataset, const std::string& target, const Session& session,
                  const DatasetOptions& options, const Provenance& program, DatasetResult& result) {
  std::vector<ShardId> wanted;
  for (std::size_t i = 0; i < dataset.conditions.size(); ++i) {
    const std::uint64_t shards = dataset.conditions[i].shards;
    if (options.only_shard && *options.only_shard >= shards) {
      throw InvalidInput("--only-shard: is " + std::to_string(*options.only_shard) +
                         ", but shards are numbered from 0 to " + std::to_string(shards - 1));
    }
    const std::uint64_t first = options.only_shard.value_or(0);
    const std::uint64_t end = options.only_shard ? first + 1 : shards;
    for (std::uint64_t shard = first; shard < end; ++shard) wanted.emplace_back(i, shard);
  }
  check_memory(dataset, thread_count(session.threads));

  if (is_being_replaced(target)) end_replacement(target, session.stop_hook());
  const bool replaces =
      options.overwrite &&
      !difference_to_manifest(target + "/manifest.json", dataset, program).empty();
  const std::string folder = replaces ? begin_replacement(target, dataset, program) : target;
  const ShardRecords there = read_manifest(folder + "/manifest.json", dataset, program);
  std::vector<ShardId> recorded, missing, lost;
  for (const ShardId& id : wanted) (there.contains(id) ? recorded : missing).push_back(id);
  const std::vector<char> intact = check_shards(dataset, folder, recorded, there, session);
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    if (!intact[i]) lost.push_back(recorded[i]);
  }
  result.folder = folder;
  if (session.should_stop()) return false;
  missing.insert(missing.end(), lost.begin(), lost.end());
  std::ranges::sort(missing);
  check_disk(dataset, folder, missing);

  result.work = {.conditions = dataset.conditions.size(),
                 .shards = wanted.size(),
                 .kept = wanted.size() - missing.size(),
                 .damaged = lost.size()};
  double work = 0;
  for (const auto& [which, shard] : missing) {
    result.work.bytes += dataset.shard_bytes(which, shard);
    work += shard_work(*dataset.conditions[which].condition, dataset.request,
                       dataset.range(which, shard).count);
  }
  if (options.begin) options.begin(result.work);
  Teller teller(session, "to write", work, result.work.bytes);
  Writing writing(dataset, folder, session, program, lost);
  try {
    writing.write(missing, teller);
  } catch (const WorkStopped&) {
  }
  result.written = writing.recorded_shards();
  if (replaces && files_of_manifest(folder + "/manifest.json").complete) {
    result.left = end_replacement(target, session.stop_hook());
    result.folder = target;
  }
  return result.written == missing.size();
}

}  // namespace

DatasetResult write_dataset(const Dataset& dataset, const std::string& target,
                            const Session& session, const DatasetOptions& options,
                            const Provenance& program) {
  const Stopwatch watch;
  DatasetResult result{.folder = target};
  bool complete = false;
  try {
    complete = write_shards(dataset, target, session, options, program, result);
  } catch (const WorkStopped&) {
  }
  result.outcome = session.outcome(complete, watch);
  return result;
}

}  // namespace headlab
