// SPDX-License-Identifier: Apache-2.0
/// \file Work of the engine in a thread of its own, so that the interpreter stays with its signals.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <nanobind/nanobind.h>
#include <optional>
#include <thread>
#include <utility>

#include "engine/files/error.h"
#include "engine/run/session.h"

namespace headlab::python {

/// A computation that Python waits for. The thread never touches the interpreter: it ends with a
/// function that makes the Python object, called by result() with the GIL. No thread outlives the
/// job, and none is kept for the next.
class Job {
 public:
  using MakeObject = std::function<nanobind::object()>;
  using Work = std::function<MakeObject(Job&)>;

  Job(Session session, Work work) : session_(std::move(session)) {
    session_.stop = &stop_;
    session_.report = [this](const Progress& progress) {
      const std::lock_guard lock(mutex_);
      progress_ = progress;
    };
    thread_ = std::thread([this, work = std::move(work)] {
      MakeObject make;
      std::exception_ptr error;
      try {
        make = work(*this);
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      make_ = std::move(make);
      error_ = error;
      done_ = true;
      changed_.notify_all();
    });
  }
  ~Job() {
    stop_ = true;
    // Whoever holds the GIL must not wait for a thread with it.
    const nanobind::gil_scoped_release released;
    if (thread_.joinable()) thread_.join();
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  Session& session() { return session_; }
  void stop() { stop_ = true; }

  /// Waits until the work is done, there is an interim result, or for some seconds. True where it
  /// is done.
  bool wait(double seconds) {
    const nanobind::gil_scoped_release released;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                      [this] { return done_ || interim_ != nullptr; });
    return done_;
  }

  /// The last report, once.
  std::optional<Progress> progress() {
    const std::lock_guard lock(mutex_);
    return std::exchange(progress_, {});
  }

  /// Called by the work with a result so far, of which the last is kept.
  void put_interim(MakeObject make) {
    const std::lock_guard lock(mutex_);
    interim_ = std::move(make);
    changed_.notify_all();
  }

  /// The last interim result, once; None where there is no new one.
  nanobind::object interim() {
    MakeObject make;
    {
      const std::lock_guard lock(mutex_);
      make = std::exchange(interim_, nullptr);
    }
    return make ? make() : nanobind::none();
  }

  /// What the work made, once it is done; throws what it threw.
  nanobind::object result() {
    if (thread_.joinable()) {
      const nanobind::gil_scoped_release released;
      thread_.join();
    }
    if (error_) std::rethrow_exception(error_);
    return std::exchange(make_, nullptr)();
  }

 private:
  std::atomic<bool> stop_ = false;
  Session session_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::optional<Progress> progress_;
  MakeObject interim_;
  MakeObject make_;
  std::exception_ptr error_;
  std::thread thread_;
};

/// What `work(stop)` finds, made an object by `object()`: at once, or by a job. The caller's arrays
/// live as long.
template <class Arrays, class Work>
nanobind::object here_or_as_job(bool here, Arrays arrays, std::shared_ptr<Work> work) {
  if (here) {
    {
      const nanobind::gil_scoped_release released;
      (*work)(nullptr);
    }
    return work->object();
  }
  // Whichever thread lets go of the arrays last does so with the interpreter's lock.
  const std::shared_ptr<Arrays> kept(new Arrays(std::move(arrays)), [](Arrays* all) {
    const nanobind::gil_scoped_acquire locked;
    delete all;
  });
  return nanobind::cast(std::make_unique<Job>(Session{}, [kept, work](Job& job) {
    (*work)(job.session().stop);
    if (*job.session().stop) throw Stopped();
    return Job::MakeObject([work] { return work->object(); });
  }));
}

}  // namespace headlab::python
