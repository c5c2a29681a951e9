// tidepool run: sets up the environment, runs the program and ends as it ended.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "tools/tidepool/commands.h"
#include "tools/tidepool/options.h"

namespace tidepool {
namespace {

pid_t child = -1;

void Forward(int signal) {
  if (child > 0) kill(child, signal);
}

// The file that execvp would run, or "" with errno as execvp would leave it.
std::string FindProgram(const std::string& name) {
  auto usable = [](const std::string& path) {
    struct stat info = {};
    if (stat(path.c_str(), &info) != 0) return false;
    if (S_ISDIR(info.st_mode)) {
      errno = EACCES;
      return false;
    }
    return access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) return usable(name) ? name : "";
  const char* path = getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  int error = ENOENT;
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    std::string folder(rest.substr(0, colon));
    if (folder.empty()) folder = ".";
    std::string path_there = absl::StrCat(folder, "/", name);
    if (usable(path_there)) return path_there;
    if (errno == EACCES) error = EACCES;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  errno = error;
  return "";
}

void Prepend(const char* variable, const std::string& value) {
  const char* old = getenv(variable);
  const std::string joined = old != nullptr && *old != '\0' ? absl::StrCat(value, ":", old) : value;
  setenv(variable, joined.c_str(), 1);
}

bool Exists(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

// Sets the variables that the library and simgpu read. False: said why.
bool SetEnvironment(const RunOptions& options) {
  if (options.sim.has_value()) {
    const std::string folder = SimulatorDirectory();
    if (!Exists(folder + "/libcuda.so.1")) {
      PrintError(absl::StrCat("--sim: the simulated device is not at ", folder,
                              "; build it with: cmake --build --preset release"));
      return false;
    }
    Prepend("LD_LIBRARY_PATH", folder);
    if (!options.sim->empty()) setenv("SIMGPU_MEMORY", options.sim->c_str(), 1);
  }
  if (options.off) return true;
  const std::string library = LibraryPath();
  if (!Exists(library)) {
    PrintError(absl::StrCat("the runtime is not at ", library,
                            "; build it with: cmake --build --preset release"));
    return false;
  }
  auto set = [](const char* variable, const std::optional<std::string>& value) {
    if (value.has_value()) setenv(variable, value->c_str(), 1);
  };
  set("TIDEPOOL_BUDGET", options.budget);
  set("TIDEPOOL_POLICY", options.policy);
  set("TIDEPOOL_REPORT", options.report);
  set("TIDEPOOL_TIMELINE", options.timeline);
  set("TIDEPOOL_TRACE", options.trace);
  if (options.strict) setenv("TIDEPOOL_STRICT", "1", 1);
  if (getenv("TIDEPOOL_BUDGET") == nullptr) {
    PrintError("no budget: give --budget SIZE|N% or set TIDEPOOL_BUDGET (or --off to compare)");
    return false;
  }
  Prepend("LD_PRELOAD", library);
  return true;
}

// Ends this process as the child ended.
int EndAs(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  const int number = WTERMSIG(status);
  // The child has left a core file if one was wanted.
  rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(number, SIG_DFL);
  raise(number);
  return 128 + number;
}

}  // namespace

int RunCommand(const std::vector<std::string>& arguments) {
  absl::StatusOr<RunOptions> options = ParseRunOptions(arguments);
  if (!options.ok()) {
    PrintError(std::string(options.status().message()));
    return kExitUsage;
  }
  const std::string program = FindProgram(options->program[0]);
  if (program.empty()) {
    const int error = errno;
    PrintError(absl::StrCat("cannot run ", options->program[0], ": ", std::strerror(error)));
    return error == EACCES ? kExitCannotExecute : kExitNotFound;
  }
  if (!options->sim.has_value() && dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) == nullptr) {
    PrintError(
        "no CUDA driver (libcuda.so.1) was found here; --sim runs the program on a simulated "
        "device");
  }
  if (!SetEnvironment(*options)) return kExitUsage;

  // The runtime puts a byte there when the program reaches the driver: otherwise nothing was done,
  // and that is worth a line.
  int seen[2] = {-1, -1};
  if (!options->off && pipe(seen) == 0) {
    fcntl(seen[0], F_SETFD, FD_CLOEXEC);
    fcntl(seen[0], F_SETFL, O_NONBLOCK);
    setenv("TIDEPOOL_SEEN_FD", absl::StrCat(seen[1]).c_str(), 1);
  }
  child = fork();
  if (child < 0) {
    PrintError(absl::StrCat("cannot start a process: ", std::strerror(errno)));
    return kExitUsage;
  }
  if (child == 0) {
    std::vector<char*> argv;
    argv.reserve(options->program.size() + 1);
    for (std::string& argument : options->program) argv.push_back(argument.data());
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    const int error = errno;
    PrintError(absl::StrCat("cannot run ", program, ": ", std::strerror(error)));
    _exit(error == ENOENT ? kExitNotFound : kExitCannotExecute);
  }
  if (seen[1] >= 0) close(seen[1]);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) signal(number, Forward);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return kExitUsage;
  }
  const int failed_to_start = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  char byte = 0;
  if (seen[0] >= 0 && read(seen[0], &byte, 1) != 1 && failed_to_start != kExitNotFound &&
      failed_to_start != kExitCannotExecute) {
    PrintError(
        absl::StrCat(options->program[0],
                     " made no CUDA driver call: nothing was managed (is it a CUDA program?)"));
  }
  return EndAs(status);
}

}  // namespace tidepool
