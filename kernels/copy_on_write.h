// SPDX-License-Identifier: Apache-2.0
/// \file A value of a type that need not be complete where it is held: copies share it until one of
/// them is changed.
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
  CopyOnWrite() : value_(std::make_shared<T>()) {}
  template <class From>
  requires(!std::is_same_v<std::remove_cvref_t<From>, CopyOnWrite>) CopyOnWrite(From&& from)
      : value_(std::make_shared<T>(std::forward<From>(from))) {}

  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }

  /// The value to be changed, which no other copy sees.
  T& own() {
    if (value_.use_count() > 1) value_ = std::make_shared<T>(*value_);
    return *value_;
  }

  bool operator==(const CopyOnWrite& other) const {
    return value_ == other.value_ || *value_ == *other.value_;
  }

 private:
  std::shared_ptr<T> value_;
};

}  // namespace headlab
