// Many threads at once through the hooks, and processes that are forked while they are.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/intercept/fixture.h"

namespace tidepool::testing {
namespace {

constexpr CUresult kOk = CUDA_SUCCESS;

constexpr char kModule[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry touch(.param .u64 p, .param .u32 n)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [n];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

class Processes : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    ASSERT_EQ(cuModuleLoadData(&module_, kModule), kOk);
    ASSERT_EQ(cuModuleGetFunction(&kernel_, module_, "touch"), kOk);
    // Makes the engine.
    CUdeviceptr at = 0;
    ASSERT_EQ(cuMemAlloc(&at, 1), kOk);
    ASSERT_EQ(cuMemFree(at), kOk);
  }

  // Allocates, fills, launches, reads back and frees. False: a call failed, or bytes are wrong.
  bool Use(size_t bytes, char value) const {
    CUdeviceptr at = 0;
    if (cuMemAlloc(&at, bytes) != kOk) return false;
    std::vector<char> in(bytes, value), out(bytes);
    unsigned int n = 1;
    void* params[] = {&at, &n};
    bool fine = cuMemcpyHtoD(at, in.data(), bytes) == kOk;
    fine = cuLaunchKernel(kernel_, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr) == kOk && fine;
    fine = cuMemcpyDtoH(out.data(), at, bytes) == kOk && in == out && fine;
    return cuMemFree(at) == kOk && fine;
  }

  CUmodule module_ = nullptr;
  CUfunction kernel_ = nullptr;
};

TEST_F(Processes, ThreadsAllocateLaunchAndFreeAtOnce) {
  const Log log;
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      cuCtxSetCurrent(context_);
      for (unsigned i = 0; i < 100; ++i) {
        const size_t bytes = size_t{256} << ((i * 7 + t) % 14);  // 256 bytes to 2 MiB
        if (!Use(bytes, static_cast<char>(t * 16 + i % 16))) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_TRUE(log.Has("cuLaunchKernel"));
  EXPECT_FALSE(log.Has("cuMemAlloc_v2"));
  EXPECT_FALSE(log.Has("cuMemFree_v2"));
}

TEST_F(Processes, AForkedChildPassesThrough) {
  std::atomic<bool> stop{false};
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      cuCtxSetCurrent(context_);
      while (!stop) {
        CUdeviceptr at = 0;
        if (cuMemAlloc(&at, 1024) != kOk || cuMemFree(at) != kOk) ++failures;
      }
    });
  }
  const Log log;
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      // A lock that a thread of the parent held at the fork would be held for ever.
      alarm(20);
      CUdeviceptr at = 0;
      unsigned int n = 1;
      void* params[] = {&at, &n};
      const bool fine =
          cuInit(0) == kOk && cuMemAlloc(&at, 1024) == kOk &&
          cuLaunchKernel(kernel_, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr) == kOk &&
          cuMemFree(at) == kOk;
      _exit(fine ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "fork " << i;
    if (status != 0) break;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  // The parent's go to the pool; each child's go to the driver.
  const std::vector<std::string> lines = log.lines();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "cuMemAlloc_v2"), 200);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "cuMemFree_v2"), 200);
  EXPECT_TRUE(Use(4096, 'z')) << "the parent goes on";
}

}  // namespace
}  // namespace tidepool::testing
