// SPDX-License-Identifier: Apache-2.0
#include "engine/run/session.h"

#include <mutex>
#include <stdexcept>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "kernels/backends.h"
#include "kernels/parallel_for.h"

namespace headlab {

using Clock = std::chrono::steady_clock;

struct BackendChoice::Made {
  std::mutex mutex;
  std::unique_ptr<Backend> backend;
};

std::shared_ptr<BackendChoice::Made> BackendChoice::none() {
  return std::make_shared<Made>();
}

const Backend& BackendChoice::operator*() const {
  const std::lock_guard lock(made_->mutex);
  try {
    if (!made_->backend) made_->backend = make_backend(name_);
  } catch (const std::invalid_argument& error) {
    throw InvalidInput(error.what());
  }
  return *made_->backend;
}

bool Session::should_stop() const {
  return (stop && stop->load()) || Clock::now() >= deadline;
}

std::function<bool()> Session::stop_hook() const {
  return [this] { return should_stop(); };
}

std::function<void(double)> Session::stage(const std::string& name) const {
  if (!report) return {};
  return [tell = report, name](double share) { tell({.stage = name, .share = share}); };
}

Session Session::part(const std::string& name) const {
  Session session = *this;
  session.unit += (unit.empty() ? "" : ", ") + name;
  if (report) {
    session.report = [tell = report, name](Progress progress) {
      progress.stage = name + ": " + progress.stage;
      tell(progress);
    };
  }
  return session;
}

Machine Session::machine() const {
  return {.backend = backend->name(),
          .simd = backend->simd(),
          .device = one_line(backend->device()),
          .threads = backend->workers(thread_count(threads))};
}

Outcome Session::outcome(bool complete, const Stopwatch& watch) const {
  return {.complete = complete,
          .interrupted = !complete && stop && stop->load(),
          .seconds = watch.seconds()};
}

Clock::time_point deadline_in(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace headlab
