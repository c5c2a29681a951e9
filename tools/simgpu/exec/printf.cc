// vprintf: the format and a block of arguments, laid out as the C compiler lays out a struct of
// them.
#include <cstdio>
#include <cstring>

#include "tools/simgpu/exec/code.h"

namespace simgpu {
namespace {

std::string ReadString(Warp& warp, int lane, uint64_t address) {
  std::string text;
  for (; text.size() < 65536; ++address) {
    const char c = static_cast<char>(*GenericPointer(warp, lane, address, 1, false));
    if (c == '\0') break;
    text += c;
  }
  return text;
}

std::string Format(Warp& warp, int lane, const std::string& format, uint64_t args) {
  std::string out;
  uint64_t offset = 0;
  auto take = [&](void* to, uint32_t bytes) {
    offset = (offset + bytes - 1) / bytes * bytes;
    std::memcpy(to, GenericPointer(warp, lane, args + offset, bytes, false), bytes);
    offset += bytes;
  };
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    if (i + 1 < format.size() && format[i + 1] == '%') {
      out += '%';
      ++i;
      continue;
    }
    std::string spec = "%";
    bool is_long = false;
    for (++i; i < format.size(); ++i) {
      const char c = format[i];
      if (c == 'l' || c == 'z' || c == 'j' || c == 't') {
        is_long = true;
      } else if (c == 'h') {
      } else if (c == '*') {
        int32_t width = 0;
        take(&width, 4);
        spec += std::to_string(width);
      } else if (std::strchr("-+ #0123456789.", c) != nullptr) {
        spec += c;
      } else {
        break;
      }
    }
    if (i >= format.size()) break;
    const char kind = format[i];
    char text[512];
    text[0] = '\0';
    if (std::strchr("diuoxXc", kind) != nullptr) {
      if (is_long) {
        long long value = 0;
        take(&value, 8);
        std::snprintf(text, sizeof(text), (spec + "ll" + kind).c_str(), value);
      } else {
        int32_t value = 0;
        take(&value, 4);
        std::snprintf(text, sizeof(text), (spec + kind).c_str(), value);
      }
      out += text;
    } else if (std::strchr("eEfFgGaA", kind) != nullptr) {
      double value = 0;
      take(&value, 8);
      std::snprintf(text, sizeof(text), (spec + kind).c_str(), value);
      out += text;
    } else if (kind == 'p') {
      void* value = nullptr;
      take(&value, 8);
      std::snprintf(text, sizeof(text), (spec + kind).c_str(), value);
      out += text;
    } else if (kind == 's') {
      uint64_t value = 0;
      take(&value, 8);
      out += ReadString(warp, lane, value);
    }
  }
  return out;
}

}  // namespace

void DevicePrintf(Warp& warp, uint32_t mask, const CallSite& site) {
  if (site.arguments.size() != 2) return;
  const Frame& frame = *warp.frame;
  for (int i = 0; i < kLanes; ++i) {
    if (!(mask >> i & 1)) continue;
    const uint8_t* params = frame.params + static_cast<size_t>(i) * frame.code->param_bytes;
    uint64_t format = 0, args = 0;
    std::memcpy(&format, params + site.arguments[0].offset, 8);
    std::memcpy(&args, params + site.arguments[1].offset, 8);
    warp.block->output += Format(warp, i, ReadString(warp, i, format), args);
  }
}

}  // namespace simgpu
