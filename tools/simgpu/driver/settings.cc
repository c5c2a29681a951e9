#include "tools/simgpu/driver/settings.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace simgpu {
namespace {

bool ParseNumber(std::string_view text, uint64_t* value, std::string_view* rest) {
  size_t i = 0;
  *value = 0;
  while (i < text.size() && text[i] >= '0' && text[i] <= '9') {
    const auto digit = static_cast<uint64_t>(text[i] - '0');
    if (*value > (~uint64_t{0} - digit) / 10) return false;
    *value = *value * 10 + digit;
    ++i;
  }
  *rest = text.substr(i);
  return i > 0;
}

bool ParseBytes(const char* text, uint64_t* bytes) {
  std::string_view unit;
  if (!ParseNumber(text, bytes, &unit)) return false;
  int shift = 0;
  if (unit == "KiB") {
    shift = 10;
  } else if (unit == "MiB") {
    shift = 20;
  } else if (unit == "GiB") {
    shift = 30;
  } else if (!unit.empty()) {
    return false;
  }
  if (*bytes > (~uint64_t{0} >> shift)) return false;
  *bytes <<= shift;
  return true;
}

Settings Read() {
  Settings s;
  auto complain = [&](const char* name, const char* value, const char* accepted) {
    s.error =
        std::string("simgpu: ") + name + "=\"" + value + "\" is not valid: " + accepted + "\n";
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, s.error.data(), s.error.size());
  };
  if (const char* text = std::getenv("SIMGPU_MEMORY")) {
    if (!ParseBytes(text, &s.memory_bytes) || s.memory_bytes == 0) {
      complain("SIMGPU_MEMORY", text, "a size such as 16GiB, 512MiB, 64KiB or bytes");
    }
  }
  if (const char* text = std::getenv("SIMGPU_PAGE")) {
    if (!ParseBytes(text, &s.page_bytes) || s.page_bytes < 4096 ||
        (s.page_bytes & (s.page_bytes - 1)) != 0) {
      complain("SIMGPU_PAGE", text, "a power of two of at least 4KiB, such as 2MiB or 64KiB");
    }
  }
  if (const char* text = std::getenv("SIMGPU_SEED")) {
    std::string_view rest;
    if (!ParseNumber(text, &s.seed, &rest) || !rest.empty()) {
      complain("SIMGPU_SEED", text, "a number");
    }
  }
  if (const char* text = std::getenv("SIMGPU_STATS")) s.stats_path = text;
  return s;
}

}  // namespace

const Settings& GetSettings() {
  static const Settings* settings = new Settings(Read());
  return *settings;
}

const DeviceModel& GetDeviceModel() {
  static const DeviceModel model;
  return model;
}

}  // namespace simgpu
