#include "tools/simgpu/exec/workers.h"

#include <algorithm>
#include <utility>

namespace simgpu {

Workers::Impl::Impl(int threads) {
  if (threads <= 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

Workers::Impl::~Impl() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::Impl::Post(std::function<void()> work) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(work));
  }
  ready_.notify_one();
}

void Workers::Impl::Loop() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      ready_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

Workers::Workers(int threads) : impl_(std::make_unique<Impl>(threads)) {}
Workers::~Workers() = default;
int Workers::size() const { return impl_->size(); }

}  // namespace simgpu
