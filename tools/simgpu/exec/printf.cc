// vprintf and __assertfail. vprintf gets the format and a block of arguments, laid out as a struct
// of them; every length and conversion of C is understood, %n and %ls are not.
#include <bit>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_format.h"
#include "tools/simgpu/exec/fault.h"
#include "tools/simgpu/exec/lanes.h"
#include "tools/simgpu/exec/warp.h"

namespace simgpu {
namespace {

constexpr size_t kMaxText = 65536;

// Reads through a trap of its own: a jump from here to the block's would leave strings behind.
uint8_t ReadByte(Warp& w, int lane, uint64_t address) {
  const uint8_t* p = GenericPointer(w, lane, address, 1, false);
  uint8_t byte = 0;
  if (!SafeReadByte(reinterpret_cast<uint64_t>(p), &byte)) {
    ThrowFault(Fault::kIllegalAddress, address, lane, "read of a string");
  }
  return byte;
}

std::string ReadString(Warp& w, int lane, uint64_t address) {
  std::string text;
  while (text.size() < kMaxText) {
    const char c = static_cast<char>(ReadByte(w, lane, address++));
    if (c == '\0') break;
    text += c;
  }
  return text;
}

class Formatter {
 public:
  Formatter(Warp& warp, int lane, uint64_t args) : w_(warp), lane_(lane), args_(args) {}
  std::string Run(const std::string& format);

 private:
  template <typename T>
  T Take() {
    offset_ = (offset_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    uint8_t bytes[sizeof(T)];
    for (size_t k = 0; k < sizeof(T); ++k) bytes[k] = ReadByte(w_, lane_, args_ + offset_ + k);
    offset_ += sizeof(T);
    T value;
    std::memcpy(&value, bytes, sizeof(T));
    return value;
  }
  template <typename T>
  static std::string Print(const std::string& spec, T value) {
    const int length = std::snprintf(nullptr, 0, spec.c_str(), value);
    if (length <= 0) return "";
    std::string text(static_cast<size_t>(length) + 1, '\0');
    std::snprintf(text.data(), text.size(), spec.c_str(), value);
    text.pop_back();
    return text;
  }
  std::string Integer(const std::string& spec, int longs, int shorts, char kind);

  Warp& w_;
  int lane_;
  uint64_t args_;
  uint64_t offset_ = 0;
};

std::string Formatter::Integer(const std::string& spec, int longs, int shorts, char kind) {
  const bool is_signed = kind == 'd' || kind == 'i';
  if (kind == 'c') return Print(spec + kind, Take<int32_t>());
  if (longs > 0) return Print(spec + "ll" + kind, static_cast<long long>(Take<int64_t>()));
  auto value = Take<int32_t>();
  if (shorts == 1) {
    value = is_signed ? static_cast<int16_t>(value) : static_cast<uint16_t>(value);
  } else if (shorts > 1) {
    value = is_signed ? static_cast<int8_t>(value) : static_cast<uint8_t>(value);
  }
  return Print(spec + kind, value);
}

std::string Formatter::Run(const std::string& format) {
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    const size_t start = i;
    std::string spec = "%";
    int longs = 0, shorts = 0;
    for (++i; i < format.size(); ++i) {
      const char c = format[i];
      if (c == 'l' || c == 'z' || c == 'j' || c == 't') {
        ++longs;
      } else if (c == 'h') {
        ++shorts;
      } else if (c == '*') {
        spec += std::to_string(Take<int32_t>());
      } else if (std::strchr("-+ #0123456789.", c) != nullptr) {
        spec += c;
      } else {
        break;
      }
    }
    if (i >= format.size()) {
      out += format.substr(start);
      break;
    }
    const char kind = format[i];
    if (kind == '%') {
      out += '%';
    } else if (std::strchr("diuoxXc", kind) != nullptr) {
      out += Integer(spec, longs, shorts, kind);
    } else if (std::strchr("eEfFgGaA", kind) != nullptr) {
      out += Print(spec + kind, Take<double>());
    } else if (kind == 'p') {
      out += Print(spec + kind, reinterpret_cast<void*>(Take<uint64_t>()));
    } else if (kind == 's') {
      const auto address = Take<uint64_t>();
      const std::string text = address == 0 ? "(null)" : ReadString(w_, lane_, address);
      out += Print(spec + kind, text.c_str());
    } else {
      out += format.substr(start, i - start + 1);
    }
  }
  return out;
}

uint64_t Argument64(Warp& w, const CallSite& site, size_t k, int lane) {
  if (k >= site.arguments.size()) return 0;
  const Frame& frame = *w.frame;
  uint64_t value = 0;
  std::memcpy(
      &value,
      frame.params + static_cast<size_t>(lane) * frame.code->param_bytes + site.arguments[k].offset,
      site.arguments[k].bytes < 8 ? site.arguments[k].bytes : 8);
  return value;
}

}  // namespace

void DevicePrintf(Warp& w, uint32_t lanes, const CallSite& site) {
  // What the call gives back: how many arguments there were. Nobody looks; it must be defined.
  Frame& frame = *w.frame;
  ForLanes(lanes, [&](int i) {
    const std::string format = ReadString(w, i, Argument64(w, site, 0, i));
    w.block->output += Formatter(w, i, Argument64(w, site, 1, i)).Run(format);
    if (!site.results.empty()) {
      const int32_t written = static_cast<int32_t>(format.size());
      std::memcpy(
          frame.params + static_cast<size_t>(i) * frame.code->param_bytes + site.results[0].offset,
          &written, sizeof(written));
    }
  });
}

// __assertfail(message, file, line, function, char size).
void DeviceAssert(Warp& w, uint32_t lanes, const CallSite& site) {
  const Block& block = *w.block;
  const int first = std::countr_zero(lanes);
  std::string text;
  ForLanes(lanes, [&](int i) {
    const std::string line = absl::StrFormat(
        "%s:%d: %s: block: [%d,%d,%d], thread: [%d,%d,%d] Assertion `%s` failed.",
        ReadString(w, i, Argument64(w, site, 1, i)),
        static_cast<uint32_t>(Argument64(w, site, 2, i)),
        ReadString(w, i, Argument64(w, site, 3, i)), block.id[0], block.id[1], block.id[2],
        w.tid[0][i], w.tid[1][i], w.tid[2][i], ReadString(w, i, Argument64(w, site, 0, i)));
    if (i == first) text = line;
    w.block->output += line + "\n";
  });
  throw FaultError{Fault::kAssert, 0, first, text};
}

}  // namespace simgpu
