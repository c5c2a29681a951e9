// For programs that run with libtidepool.so preloaded on the driver that logs: the log, and the
// device's primary context. The environment that ctest gives them is in CMakeLists.txt.
#pragma once

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace tidepool::testing {

// What the driver was asked since this object was made.
class Log {
 public:
  Log() : start_(Lines().size()) {}
  std::vector<std::string> lines() const {
    std::vector<std::string> all = Lines();
    return {all.begin() + static_cast<std::ptrdiff_t>(start_), all.end()};
  }
  bool Has(const std::string& line) const {
    const std::vector<std::string> all = lines();
    return std::find(all.begin(), all.end(), line) != all.end();
  }

 private:
  static std::vector<std::string> Lines() {
    std::vector<std::string> lines;
    const char* path = std::getenv("FAKE_DRIVER_LOG");
    std::ifstream file(path != nullptr ? path : "");
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  size_t start_;
};

// The file that a function is in, without its folder.
inline std::string FileOf(const void* function) {
  Dl_info info;
  if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string path = info.dli_fname;
  return path.substr(path.rfind('/') + 1);
}

class DriverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* log = std::getenv("FAKE_DRIVER_LOG");
    ASSERT_NE(log, nullptr) << "run by ctest";
    [[maybe_unused]] const int truncated = truncate(log, 0);  // it may not be there yet
    ASSERT_EQ(FileOf(reinterpret_cast<void*>(cuInit)), "libtidepool.so") << "not preloaded";
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  }
  CUcontext context_ = nullptr;
};

}  // namespace tidepool::testing
