// A forked child has no device; the parent goes on.
#include <sys/wait.h>
#include <unistd.h>

#include "trap.h"
using namespace trap;

int main() {
  float* a = Filled(1);
  float* b = Alloc();
  Step(b, a);
  Layers layers;
  layers.Forward(1);
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    // The child frees its own things and ends as programs do.
    std::vector<int> work(1000, 3);
    std::_Exit(work[500]);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 1;
  std::printf("child %d\n", WEXITSTATUS(status));
  std::fflush(stdout);
  if (const pid_t second = fork(); second == 0) {
    std::exit(5);  // through the exit handlers
  } else if (waitpid(second, &status, 0) != second) {
    return 1;
  }
  std::printf("child %d\n", WEXITSTATUS(status));
  layers.Backward();
  Print("a", a);
  Print("b", b);
}
