// Does the thread sanitizer see through OpenMP here? `planted_race sound` sums in parallel as the library
// does and must end without a report; `planted_race race` writes one variable from all threads, which must be
// reported.
#include <cstdio>
#include <cstring>
#include <vector>

int main(int argc, char** argv) {
  const bool race = argc > 1 && std::strcmp(argv[1], "race") == 0;
  std::vector<double> values(10000);
  double sum = 0.0, last = 0.0;
  for (int repeat = 0; repeat < 20; ++repeat) {
#pragma omp parallel for schedule(dynamic) num_threads(2)
    for (int k = 0; k < 10000; ++k) values[static_cast<std::size_t>(k)] = k + repeat;
#pragma omp parallel for schedule(static) reduction(+ : sum) num_threads(2)  // each thread has a half
    for (int k = 0; k < 10000; ++k) {
      sum += values[static_cast<std::size_t>(k)];
      if (race) last = k;
    }
  }
  std::printf("%g %g\n", sum, last);
  return 0;
}
