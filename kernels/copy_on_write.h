// SPDX-License-Identifier: Apache-2.0
/// \file A value of a type that need not be complete where it is held: copies share it, and a
/// change makes another.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace headlab {

/// Holds a T. Only what makes, reads or changes the T needs its definition; copying, moving and
/// destroying do not. One that was moved from may be destroyed or assigned to.
template <class T>
class CopyOnWrite {
 public:
  CopyOnWrite() : value_(std::make_shared<const T>()) {}
  template <class From>
  requires(!std::is_same_v<std::remove_cvref_t<From>, CopyOnWrite>) CopyOnWrite(From&& from)
      : value_(std::make_shared<const T>(std::forward<From>(from))) {}

  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }

  /// The value to be changed, a new one that no other copy sees; references to the one before may
  /// dangle. That use_count() is 1 would not do, because it says nothing about when another thread
  /// read the value that it let go.
  T& own() {
    auto changed = std::make_shared<T>(*value_);
    value_ = changed;
    return *changed;
  }

  bool operator==(const CopyOnWrite& other) const {
    return value_ == other.value_ || *value_ == *other.value_;
  }

 private:
  std::shared_ptr<const T> value_;
};

}  // namespace headlab
