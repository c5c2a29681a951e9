#include "runtime/access/kernel_name.h"

#include <cxxabi.h>

#include <cstdlib>

#include "absl/strings/str_replace.h"

namespace tidepool {

std::string Demangled(const std::string& name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string out = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return out;
}

std::string ShortKernelName(const std::string& name) {
  std::string text = absl::StrReplaceAll(Demangled(name), {{"(anonymous namespace)::", ""}});
  // The parameter list is the first "(" outside of template arguments; the return type of a
  // template, which a kernel has to give, ends before the name.
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<') ++depth;
    if (c == '>') --depth;
    if (depth != 0) continue;
    if (c == ' ') begin = i + 1;
    if (c == '(') return i > begin ? text.substr(begin, i - begin) : text;
  }
  return text;
}

}  // namespace tidepool
