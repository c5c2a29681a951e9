// The commands of the tidepool program. Each takes the arguments that follow its name and returns
// the process's exit status; output for people goes to stdout, errors, one line each, to stderr.
#pragma once

#include <string>
#include <vector>

namespace tidepool {

// Statuses of `tidepool run` when it is not the program's own (as env(1) has them).
inline constexpr int kExitUsage = 125;          // Tidepool itself failed: a bad flag or budget
inline constexpr int kExitCannotExecute = 126;  // the program is there but cannot be run
inline constexpr int kExitNotFound = 127;       // there is no such program

int RunCommand(const std::vector<std::string>& arguments);
int ReportCommand(const std::vector<std::string>& arguments);
int KernelsCommand(const std::vector<std::string>& arguments);
int DoctorCommand(const std::vector<std::string>& arguments);

// Paths beside the running executable: ../lib of the build or installation tree.
std::string LibraryPath();         // libtidepool.so
std::string SimulatorDirectory();  // simgpu's libraries

void PrintError(const std::string& text);  // "tidepool: <text>\n" to stderr

}  // namespace tidepool
