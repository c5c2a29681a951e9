// Names of kernels for people. Pure functions; thread-safe.
#pragma once

#include <string>

namespace tidepool {

// "void ns::Add<float>(float*, int)" for a mangled C++ name; any other name as it is.
std::string Demangled(const std::string& name);

// The same without return type and parameters: "ns::Add<float>".
std::string ShortKernelName(const std::string& name);

}  // namespace tidepool
