// The threads that run blocks.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "tools/simgpu/exec/exec.h"

namespace simgpu {

class Workers::Impl {
 public:
  explicit Impl(int threads);
  ~Impl();
  int size() const { return static_cast<int>(threads_.size()); }
  void Post(std::function<void()> work);

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> queue_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace simgpu
