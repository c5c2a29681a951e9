// What the conformance tests share. They state what NVIDIA's documentation promises of any CUDA
// device, and hold on hardware as they do on a simulated one: nothing here may know which it is.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

// Errors are compared by name, so that a failure reads well.
#define EXPECT_CUDA(wanted, call) EXPECT_STREQ(cudaGetErrorName(wanted), cudaGetErrorName(call))
#define ASSERT_CUDA(wanted, call) ASSERT_STREQ(cudaGetErrorName(wanted), cudaGetErrorName(call))
#define EXPECT_OK(call) EXPECT_CUDA(cudaSuccess, call)
#define ASSERT_OK(call) ASSERT_CUDA(cudaSuccess, call)

// Scenarios that end with a dead context run in a process of their own, made by starting this
// binary again: a context cannot be brought back, and a forked child cannot use CUDA.
#define EXPECT_IN_NEW_PROCESS(...)                         \
  GTEST_FLAG_SET(death_test_style, "threadsafe");          \
  const auto scenario = []() __VA_ARGS__;                  \
  EXPECT_EXIT(                                             \
      {                                                    \
        scenario();                                        \
        std::exit(::testing::Test::HasFailure() ? 1 : 42); \
      },                                                   \
      ::testing::ExitedWithCode(42), "")

// Device memory that is freed at the end of its scope.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) {
    EXPECT_OK(cudaMalloc(&data_, count * sizeof(T)));
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    EXPECT_OK(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return data_; }
  size_t count() const { return count_; }
  size_t bytes() const { return count_ * sizeof(T); }
  // Waits for the work of the legacy default stream, as cudaMemcpy does.
  std::vector<T> Read() const {
    std::vector<T> values(count_);
    EXPECT_OK(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t count_ = 0;
};

class Stream {
 public:
  explicit Stream(unsigned flags = cudaStreamDefault) {
    EXPECT_OK(cudaStreamCreateWithFlags(&stream_, flags));
  }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  explicit Event(unsigned flags = cudaEventDefault) {
    EXPECT_OK(cudaEventCreateWithFlags(&event_, flags));
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// A host function that holds its stream up until the test lets it go on. Work behind it has
// certainly not run, whatever the device's speed.
class Gate {
 public:
  // Declared after the streams that it holds up: it opens before they are waited for.
  ~Gate() { Open(); }
  void Close(cudaStream_t stream) { EXPECT_OK(cudaLaunchHostFunc(stream, &Gate::Wait, this)); }
  void Open() {
    std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // From a host function or another thread: blocks until Open.
  static void Wait(void* self) {
    auto* gate = static_cast<Gate*>(self);
    std::unique_lock<std::mutex> lock(gate->mutex_);
    gate->changed_.wait(lock, [gate] { return gate->open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

class Conformance : public ::testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    ASSERT_OK(cudaGetDeviceCount(&count));
    ASSERT_GT(count, 0);
    ASSERT_OK(cudaGetLastError());
  }
  // What a test leaves must not be found by the next one.
  void TearDown() override {
    cudaDeviceSynchronize();
    cudaGetLastError();
  }
};
