#include <unistd.h>

#include <climits>
#include <cstdio>
#include <string>
#include <vector>

#include "tools/tidepool/commands.h"

namespace tidepool {
namespace {

constexpr char kUsage[] =
    "tidepool: GPU memory pool with transparent activation eviction\n"
    "\n"
    "  tidepool run [--budget SIZE|N%] [--sim[=SIZE]] [--off] [--strict] [--policy NAME]\n"
    "               [--report FILE] [--timeline FILE] [--trace FILE] -- PROGRAM [ARG...]\n"
    "  tidepool report FILE          a report in words\n"
    "  tidepool kernels PROGRAM      what each kernel of a program does with its parameters\n"
    "  tidepool doctor [--sim]       what this machine has and lacks\n"
    "\n"
    "Sizes: 8GiB, 512MiB, 64KiB, bytes; N% is of the device's memory.\n";

std::string Root() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) return "..";
  std::string executable(path, static_cast<size_t>(length));
  const size_t bin = executable.rfind('/');
  return executable.substr(0, executable.rfind('/', bin - 1));
}

}  // namespace

std::string LibraryPath() { return Root() + "/lib/libtidepool.so"; }
std::string SimulatorDirectory() { return Root() + "/lib/simgpu"; }

void PrintError(const std::string& text) {
  const std::string line = "tidepool: " + text + "\n";
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::fputs(kUsage, stderr);
    return kExitUsage;
  }
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  const std::string& command = arguments[0];
  if (command == "run") return RunCommand(rest);
  if (command == "report") return ReportCommand(rest);
  if (command == "kernels") return KernelsCommand(rest);
  if (command == "doctor") return DoctorCommand(rest);
  if (command == "--help" || command == "-h" || command == "help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  PrintError("unknown command " + command + "; commands: run, report, kernels, doctor");
  return kExitUsage;
}

}  // namespace tidepool

int main(int argc, char** argv) {
  return tidepool::Main(std::vector<std::string>(argv + 1, argv + argc));
}
