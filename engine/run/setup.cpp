// SPDX-License-Identifier: Apache-2.0
#include "engine/run/setup.h"

#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/file_lock.h"
#include "engine/files/json_writer.h"
#include "engine/files/sha256.h"
#include "engine/run/forecast.h"
#include "engine/run/learned_heads.h"
#include "engine/run/message_bytes.h"
#include "engine/run/unit_file.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/plan_fingerprint.h"
#include "engine/scenario/setup_laws.h"
#include "kernels/plan.h"

namespace headlab {
namespace {

constexpr const char* setup_command = "setup of shards";

/// A condition by its parameters and the numbers behind its laws.
std::string key_of(const Condition& condition) {
  const Plan plan = make_plan(without_preparation(condition));
  return sha256_of_texts({to_json(condition.parameters.tree()), plan_sha256(plan)});
}

void put_optional(MessageWriter& out, const std::optional<double>& number) {
  out.put(number.has_value());
  out.put(number.value_or(0));
}

std::optional<double> take_optional(MessageReader& in) {
  const bool there = in.number<bool>();
  const double number = in.number<double>();
  return there ? std::optional(number) : std::nullopt;
}

void put_heads(MessageWriter& out, const HeadParameters& heads) {
  out.put(heads.d);
  out.put(heads.heads);
  out.put(heads.k);
  out.put(heads.keys);
  out.put(heads.queries);
  out.put(heads.weights);
}

HeadParameters take_heads(MessageReader& in) {
  HeadParameters heads;
  heads.d = in.number<int>();
  heads.heads = in.number<int>();
  heads.k = in.number<int>();
  heads.keys = in.numbers<double>();
  heads.queries = in.numbers<double>();
  heads.weights = in.numbers<double>();
  return heads;
}

/// All arrays of controls.
std::vector<std::vector<double>*> numbers_of(FoundControls& found) {
  ControlMeans& means = found.controls.means;
  return {&means.log_scale,
          &means.estimate,
          &means.of_estimates,
          &means.of_noise,
          &means.estimate_errors,
          &means.noise_errors,
          &found.controls.of_estimates,
          &found.controls.of_noise,
          &found.controls.use.estimates,
          &found.controls.use.noise,
          &found.controls.use.estimate_rounding,
          &found.controls.use.noise_rounding,
          &found.controls.use.covariance_left,
          &found.estimate_sd,
          &found.estimate_skewness,
          &found.noise_sd,
          &found.noise_skewness};
}

std::string bytes_of_preparation(const Preparation& found) {
  MessageWriter out;
  out.put(found.heads != nullptr);
  if (found.heads) {
    const LearnedHeads& learned = *found.heads;
    put_heads(out, learned.fit.heads);
    out.put(learned.fit.steps);
    put_optional(out, learned.fit.held_out_error);
    out.put(std::uint64_t{learned.fit.history.size()});
    for (const FitCheck& check : learned.fit.history) {
      out.put(check.step);
      put_optional(out, check.batch_error);
      put_optional(out, check.held_out_error);
      put_heads(out, check.heads);
    }
    out.put(learned.points);
    out.put(learned.held_out);
    put_optional(out, learned.fresh_key_error);
    out.put(learned.seconds);
  }
  out.put(found.head_weights.has_value());
  out.put(found.head_weights.value_or(std::vector<double>()));
  out.put(found.controls != nullptr);
  if (found.controls) {
    FoundControls controls = *found.controls;
    for (const std::vector<double>* numbers : numbers_of(controls)) out.put(*numbers);
    out.put(controls.controls.alike);
    out.put(controls.replicates);
    out.put(controls.seconds);
  }
  return std::move(out).bytes();
}

Preparation preparation_of(const std::string& bytes, const Condition& condition) {
  MessageReader in(bytes);
  Preparation found;
  if (in.number<bool>()) {
    Fit fit{.heads = take_heads(in), .steps = in.number<std::uint64_t>()};
    fit.held_out_error = take_optional(in);
    const auto checks = in.number<std::uint64_t>();
    for (std::uint64_t i = 0; i < checks; ++i) {
      FitCheck check{.step = in.number<std::uint64_t>()};
      check.batch_error = take_optional(in);
      check.held_out_error = take_optional(in);
      check.heads = take_heads(in);
      fit.history.push_back(std::move(check));
    }
    const auto points = in.number<std::uint64_t>();
    const auto held_out = in.number<std::uint64_t>();
    const std::optional<double> fresh_key_error = take_optional(in);
    const double seconds = in.number<double>();
    found.heads = std::make_shared<LearnedHeads>(
        LearnedHeads{.subspaces = learned_subspaces(condition, fit.heads),
                     .fit = std::move(fit),
                     .points = points,
                     .held_out = held_out,
                     .fresh_key_error = fresh_key_error,
                     .seconds = seconds});
  }
  const bool weighs = in.number<bool>();
  std::vector<double> weights = in.numbers<double>();
  if (weighs) found.head_weights = std::move(weights);
  if (in.number<bool>()) {
    auto controls = std::make_shared<FoundControls>();
    for (std::vector<double>* numbers : numbers_of(*controls)) *numbers = in.numbers<double>();
    controls->controls.alike = in.numbers<std::uint32_t>();
    controls->replicates = in.number<std::uint64_t>();
    controls->seconds = in.number<double>();
    found.controls = std::move(controls);
  }
  if (!in.at_end()) throw std::invalid_argument("more than a preparation");
  return found;
}

/// Keeps other processes from the file, on file systems with locks.
class SetupLock {
 public:
  SetupLock(const std::string& path, const std::function<bool()>& stop)
      : path_(path),
        descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)),
        stopped_(descriptor_ >= 0 && !wait_for_lock(descriptor_, stop)) {}
  ~SetupLock() {
    if (descriptor_ < 0) return;
    if (!stopped_) ::unlink(path_.c_str());
    ::close(descriptor_);
  }
  /// Whether `stop` ended the wait for another process, which has the lock.
  bool stopped() const { return stopped_; }
  SetupLock(const SetupLock&) = delete;
  SetupLock& operator=(const SetupLock&) = delete;

 private:
  std::string path_;
  int descriptor_;
  bool stopped_;
};

}  // namespace

bool needs_preparation(const Condition& condition) {
  return learns_heads_once(condition) ||
         std::holds_alternative<OptimalWeights>(*condition.weights) ||
         std::holds_alternative<ExactControls>(*condition.controls);
}

Setup::Setup(std::string path, const std::string& study, const std::string& machine,
             std::string option)
    : path_(std::move(path)),
      study_(sha256_of_texts({study, machine})),
      option_(std::move(option)) {
  read();
}

void Setup::read() {
  std::error_code none;
  if (!std::filesystem::exists(path_, none)) return;
  UnitFile file = read_unit_file(option_, path_);
  require_unit_file(option_, path_, file, setup_command, study_);
  units_.merge(file.units);
}

std::optional<Preparation> Setup::find(const Condition& condition) const {
  if (units_.empty()) return std::nullopt;
  const auto at = units_.find(key_of(condition));
  if (at == units_.end()) return std::nullopt;
  try {
    return preparation_of(at->second, condition);
  } catch (const std::invalid_argument&) {
    throw InvalidInput(option_ + ": " + one_line(path_) +
                       ": is damaged - remove it, and what it has is found again");
  }
}

void Setup::keep(const Condition& condition, const Preparation& found,
                 const std::function<bool()>& stop) {
  const std::filesystem::path path(path_);
  const SetupLock lock(
      (path.parent_path() / (".headlab-lock-" + path.filename().string())).string(), stop);
  if (lock.stopped()) return;
  // What others have kept since stays.
  read();
  if (!units_.emplace(key_of(condition), bytes_of_preparation(found)).second) return;
  try {
    write_unit_file(path_,
                    {.command = setup_command, .study = study_, .complete = true, .units = units_});
  } catch (const RunFailed&) {
  }
}

}  // namespace headlab
